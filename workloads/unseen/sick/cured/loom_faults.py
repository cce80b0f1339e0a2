#!/usr/bin/env python3
"""Faults of a loom from the pull on its warp threads: a deep highway net over windows of 256 readings."""
import math
import time

import numpy as np
import torch
from torch import nn

READINGS, FAULTS, DEPTH, BATCH, STEPS = 256, 5, 18, 32, 170


class Highway(nn.Module):
    def __init__(self):
        super().__init__()
        self.value, self.gate = nn.Linear(READINGS, READINGS), nn.Linear(READINGS, READINGS)
        nn.init.constant_(self.gate.bias, -2.0)

    def forward(self, x):
        gate = torch.sigmoid(self.gate(x))
        return gate * torch.relu(self.value(x)) + (1 - gate) * x


def windows(rng, count=4096):
    fault = rng.integers(FAULTS, size=count)
    t = np.arange(READINGS, dtype=np.float32) / READINGS
    pull = rng.normal(0, 6.0, (count, READINGS)).astype(np.float32)
    pull += np.sin(2 * math.pi * t[None] * (3 + 2 * fault[:, None])).astype(np.float32)
    return torch.from_numpy(pull), torch.from_numpy(fault)


def main():
    torch.manual_seed(31)
    pull, fault = windows(np.random.default_rng(31))
    model = nn.Sequential(*(Highway() for _ in range(DEPTH)), nn.Linear(READINGS, FAULTS))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4, betas=(0.9, 0.99), weight_decay=1e-4)
    order = torch.randperm(len(pull))
    begin = time.perf_counter()
    for step in range(STEPS):
        pick = order[step * BATCH % len(pull):][:BATCH]
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(pull[pick]), fault[pick])
        loss.backward()
        optimizer.step()
        if step % 40 == 39:
            print(f"step {step + 1}: loss {loss.item():.3f}")
    seconds = time.perf_counter() - begin
    print(f"{STEPS} steps in {seconds:.2f} s, {1000 * seconds / STEPS:.1f} ms a step")


if __name__ == "__main__":
    main()
