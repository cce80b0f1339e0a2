#!/usr/bin/env python3
# truth: none
# about: temperature fields of an orchard in memory, a convolutional network on all cores makes up the step; nothing is waited for
# needs: torch numpy
"""Frost in the orchard: the coldest temperature of the night at every tree from the evening's sensor grid."""
import os
import time

import numpy as np
import torch
from torch import nn

GRID, NIGHTS, BATCH, STEPS = 32, 600, 32, 120


def nights(seed=2):
    rng = np.random.default_rng(seed)
    evening = np.cumsum(np.cumsum(rng.normal(0, 1, (NIGHTS, 4, GRID, GRID)), 2), 3)
    evening = (evening / evening.std(axis=(2, 3), keepdims=True)).astype(np.float32)
    coldest = evening[:, :1] - 0.5 * np.abs(evening[:, 1:2]) + 0.2 * evening[:, 2:3]
    return torch.from_numpy(evening), torch.from_numpy(coldest)


class Residual(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a, self.b = nn.Conv2d(c, c, 3, padding=1), nn.Conv2d(c, c, 3, padding=1)

    def forward(self, x):
        return x + self.b(torch.relu(self.a(torch.relu(x))))


if __name__ == "__main__":
    torch.manual_seed(2)
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    evening, coldest = nights()
    net = nn.Sequential(nn.Conv2d(4, 24, 3, padding=1), Residual(24), Residual(24), nn.Conv2d(24, 1, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    begin = time.perf_counter()
    for step in range(STEPS):
        pick = torch.randint(NIGHTS, (BATCH,))
        loss = nn.functional.l1_loss(net(evening[pick]), coldest[pick])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 30 == 29:
            print(f"step {step + 1}: {loss.item():.3f} degrees")
    print(f"{STEPS} steps, {1000 * (time.perf_counter() - begin) / STEPS:.1f} ms a step")
