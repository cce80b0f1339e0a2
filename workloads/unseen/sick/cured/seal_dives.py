# The same, and every descriptor is closed after its read.
"""Foraging or resting? A GRU over excerpts of depth logs that seals carried, one binary file for each animal."""
import os
import shutil
import sys
import tempfile
import time

import numpy as np
import torch
from torch import nn

ANIMALS, SAMPLES, EXCERPT, PER_STEP = 36, 12000, 96, 6
STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 120


def write_logs(folder, rng):
    for animal in range(ANIMALS):
        mood = rng.integers(2, size=SAMPLES // 500).repeat(500)
        depth = np.cumsum(rng.normal(0, 1 + 2 * mood)) % 90
        light = 100 - depth + rng.normal(0, 4, SAMPLES)
        np.stack([depth, light, mood], 1).astype("<f4").tofile(os.path.join(folder, f"seal{animal:02d}.bin"))


def excerpt(path, at, count):
    fd = os.open(path, os.O_RDONLY)
    try:
        block = os.pread(fd, count * 12, at * 12)
    finally:
        os.close(fd)
    return np.frombuffer(block, "<f4").reshape(count, 3)


def batches(folder, rng, steps):
    paths = sorted(os.path.join(folder, name) for name in os.listdir(folder))
    for _ in range(steps):
        rows = []
        for which in rng.choice(len(paths), PER_STEP, replace=False):
            at = int(rng.integers(0, SAMPLES - EXCERPT * 12))
            rows.append(excerpt(paths[which], at, EXCERPT * 12).reshape(12, EXCERPT, 3))
        block = torch.from_numpy(np.concatenate(rows))
        yield block[..., :2] / 50 - 1, block[..., 2].mean(1).round()


class Forager(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(2, 128, batch_first=True)
        self.out = nn.Linear(128, 1)

    def forward(self, x):
        return self.out(self.gru(x)[0][:, -1]).squeeze(1)


torch.manual_seed(3)
rng = np.random.default_rng(3)
folder = tempfile.mkdtemp(prefix="seals")
try:
    write_logs(folder, rng)
    net = Forager()
    optimizer = torch.optim.Adam(net.parameters(), 2e-3)
    began, cpu = time.perf_counter(), time.process_time()
    for x, y in batches(folder, rng, STEPS):
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(net(x), y)
        loss.backward()
        optimizer.step()
    took = time.perf_counter() - began
    print(f"loss {loss.item():.3f}; {1000 * took / STEPS:.2f} ms a step, {time.process_time() - cpu:.1f} s of CPU, {took:.2f} s")
finally:
    shutil.rmtree(folder)
