# truth: slow_samples
# about: one embroidery pattern in a hundred has a thousand times the stitches of the others; its distance field takes as long as forty batches, and the loader keeps the order, so the step that gets it stalls
# also: data_loading_bound preprocessing_bound
# cure: --limit 400
# needs: torch numpy
"""Tells the regional style of embroidery patterns.

A pattern is a list of stitches (x, y). The net sees a distance field: how far each cell of a grid is from the nearest
stitch. Most patterns are borders and monograms; some are whole altar cloths.
"""
import argparse
import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the workers need the cores too

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

GRID, STYLES = 24, 6


def patterns(count, seed):
    rng = np.random.default_rng(seed)
    whole = set(rng.choice(count, count // 100, replace=False).tolist())
    made = []
    for i in range(count):
        style = int(rng.integers(STYLES))
        stitches = int(rng.integers(28000, 36000)) if i in whole else int(rng.integers(24, 44))
        t = np.linspace(0, 2 * np.pi, stitches, dtype=np.float32)
        x = np.cos(t * (style + 1)) * (0.6 + 0.3 * np.cos(t * 7))
        y = np.sin(t * (style + 2)) * (0.6 + 0.3 * np.sin(t * 5))
        jitter = rng.normal(0, 0.03, (stitches, 2)).astype(np.float32)
        made.append((np.stack([x, y], axis=1).astype(np.float32) + jitter, style))
    return made


class Patterns(Dataset):
    def __init__(self, made, limit):
        self.made = made
        self.limit = limit
        axis = np.linspace(-1, 1, GRID, dtype=np.float32)
        self.cells = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 1, 2)

    def __len__(self):
        return len(self.made)

    def __getitem__(self, i):
        stitches, style = self.made[i]
        if self.limit and len(stitches) > self.limit:
            stitches = stitches[::len(stitches) // self.limit + 1]
        return torch.from_numpy(self.field(stitches)), style

    def field(self, stitches):
        nearest = np.full(GRID * GRID, np.inf, np.float32)
        for at in range(0, len(stitches), 64):
            gap = self.cells - stitches[None, at:at + 64]
            nearest = np.minimum(nearest, (gap * gap).sum(axis=2).min(axis=1))
        return np.exp(-20 * nearest).reshape(1, GRID, GRID)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Conv2d(1, 32, 5, padding=2)
        self.two = nn.Conv2d(32, 64, 3, padding=1)
        self.head = nn.Linear(64 * (GRID // 4) ** 2, STYLES)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.one(x)), 2)
        x = nn.functional.max_pool2d(torch.relu(self.two(x)), 2)
        return self.head(x.flatten(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--limit", type=int, default=0, help="thin patterns with more stitches than this")
    parser.add_argument("--count", type=int, default=2000)
    args = parser.parse_args()
    torch.manual_seed(3)
    torch.set_num_threads(1)
    loader = DataLoader(Patterns(patterns(args.count, 3), args.limit), batch_size=16, shuffle=True, num_workers=2)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    begin, steps, right = time.perf_counter(), 0, 0
    for field, style in loader:
        out = net(field)
        loss = criterion(out, style)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right += int((out.argmax(1) == style).sum())
        steps += 1
    took = time.perf_counter() - begin
    print("%d steps, %.1f %% right, %.2f ms a step" % (steps, 100 * right / args.count, took / steps * 1e3))


if __name__ == "__main__":
    main()
