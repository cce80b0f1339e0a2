#!/usr/bin/env python3
"""Rain in the next hour for one cell of a radar grid, from a week of it and its neighbours."""
import os
import tempfile
import time

import numpy as np
import torch
from torch import nn

ROWS, COLUMNS, HOURS, WEEK = 10, 12, 3000, 168
HOUR_BYTES = ROWS * COLUMNS * 4
STEPS, BATCH = 280, 32


def write_archive(path, rng):
    field = np.zeros((ROWS, COLUMNS), np.float32)
    with open(path, "wb") as out:
        for _ in range(HOURS):
            field = 0.9 * np.roll(field, 1, 1) + rng.gamma(0.1, 1.0, field.shape).astype(np.float32)
            out.write(field.tobytes())


class Archive:
    """Weeks of single cells out of the file, which stays on disk: the real one has forty years."""

    def __init__(self, path):
        self.fd = os.open(path, os.O_RDONLY)

    def close(self):
        os.close(self.fd)

    def week(self, hour, row, column):
        """WEEK + 1 hours of the cell and its eight neighbours, cut out of one read of the whole grid."""
        block = os.pread(self.fd, (WEEK + 1) * HOUR_BYTES, hour * HOUR_BYTES)
        grid = np.frombuffer(block, np.float32).reshape(WEEK + 1, ROWS, COLUMNS)
        return grid[:, row - 1:row + 2, column - 1:column + 2].reshape(WEEK + 1, 9)

    def batch(self, rng):
        weeks = np.stack([self.week(rng.integers(HOURS - WEEK - 1), rng.integers(1, ROWS - 1),
                                    rng.integers(1, COLUMNS - 1)) for _ in range(BATCH)])
        return torch.from_numpy(weeks[:, :WEEK]), torch.from_numpy(weeks[:, WEEK, 4].copy())


class Nowcast(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv1d(a, b, 5, stride=2, padding=2)
                                    for a, b in ((9, 64), (64, 96), (96, 96), (96, 96)))
        self.head = nn.Linear(96 * 11, 1)

    def forward(self, x):
        x = x.transpose(1, 2)
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.head(x.flatten(1)).squeeze(1)


def main():
    torch.manual_seed(11)
    rng = np.random.default_rng(11)
    with tempfile.TemporaryDirectory(prefix="rain_") as folder:
        path = os.path.join(folder, "grid.f32")
        write_archive(path, rng)
        archive = Archive(path)
        model = Nowcast()
        optimizer = torch.optim.RMSprop(model.parameters(), lr=5e-4)
        begin = time.perf_counter()
        for step in range(STEPS):
            past, rain = archive.batch(rng)
            loss = nn.functional.smooth_l1_loss(model(past), rain)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if (step + 1) % 60 == 0:
                print(f"step {step + 1}: loss {loss.item():.4f}")
        seconds = time.perf_counter() - begin
        archive.close()
    print(f"{STEPS} steps in {seconds:.2f} s, {1000 * seconds / STEPS:.1f} ms a step")


if __name__ == "__main__":
    main()
