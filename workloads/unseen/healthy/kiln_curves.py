#!/usr/bin/env python3
# truth: none
# about: a short run of a few seconds: one regression network over the firings of a pottery, all of it in memory, large products
# needs: torch numpy
"""Fits the shrinkage of pots to how the kiln was fired; done before the coffee is."""
import os
import time

import numpy as np
import torch
from torch import nn


def firings(count):
    rng = np.random.default_rng(107)
    x = rng.normal(size=(count, 24)).astype(np.float32)
    y = np.tanh(x[:, :6].sum(1)) + 0.5 * np.sin(2 * x[:, 7]) * x[:, 8] + rng.normal(0, 0.05, count)
    return torch.from_numpy(x), torch.from_numpy(y.astype(np.float32))


def main():
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    torch.manual_seed(67)
    x, y = firings(16384)
    net = nn.Sequential(nn.Linear(24, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1))
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    begin, steps = time.perf_counter(), 0
    for epoch in range(15):
        total = torch.zeros(())
        for part in torch.randperm(len(y)).split(2048):
            opt.zero_grad(set_to_none=True)
            loss = nn.functional.mse_loss(net(x[part]).squeeze(1), y[part])
            loss.backward()
            opt.step()
            total += loss.detach()
            steps += 1
    took = time.perf_counter() - begin
    print(f"mse {float(total) / 8:.4f}; {steps} steps, {1e3 * took / steps:.1f} ms each, {took:.2f} s")


if __name__ == "__main__":
    main()
