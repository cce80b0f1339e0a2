# truth: preprocessing_bound
# about: two workers keep both cores busy sorting every laser point into its voxel with Python dictionaries; no further worker can help, the same table by array operations takes a small part of the time
# cure: cured/orchard_lidar.py
# whatif: transform=4.5
# needs: torch numpy
"""Estimate the yield of fruit trees from laser scans: points to a voxel grid, grid to a small 3-D net."""
import math
import os
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

POINTS, GRID, SCANS, EPOCHS, BATCH = 7000, 12, 320, 8, 16


class Voxelise:
    """Three channels for every voxel: how many points, their mean strength, their greatest height."""

    def __init__(self, grid):
        self.grid = grid

    def __call__(self, points):
        cells = {}
        low, high = points.min(axis=0), points.max(axis=0)
        size = [(float(high[k]) - float(low[k])) / self.grid + 1e-6 for k in range(3)]
        base = [float(low[k]) for k in range(3)]
        for x, y, z, strength in points.tolist():
            key = (math.floor((x - base[0]) / size[0]),
                   math.floor((y - base[1]) / size[1]),
                   math.floor((z - base[2]) / size[2]))
            if key not in cells:
                cells[key] = {"count": 0, "strength": 0.0, "top": z - base[2]}
            cell = cells[key]
            cell["count"] += 1
            cell["strength"] += strength
            cell["top"] = max(cell["top"], z - base[2])
        out = np.zeros((3, self.grid, self.grid, self.grid), np.float32)
        for (i, j, k), cell in cells.items():
            out[0, i, j, k] = math.log1p(cell["count"])
            out[1, i, j, k] = cell["strength"] / cell["count"]
            out[2, i, j, k] = cell["top"]
        return out


class Scans(IterableDataset):
    """A stream of scans; every worker takes its own files."""

    def __init__(self, folder, transform):
        self.files = sorted(os.path.join(folder, name) for name in os.listdir(folder))
        self.transform = transform

    def __iter__(self):
        info = get_worker_info()
        mine = self.files[info.id::info.num_workers] if info else self.files
        for path in mine:
            scans = np.load(path)
            for scan in scans:
                points, fruit = scan[:-1], scan[-1, 0]
                yield torch.from_numpy(self.transform(points)), torch.tensor(fruit)


def scan_orchard(folder):
    rng = np.random.default_rng(5)
    for part in range(8):
        scans = np.empty((SCANS // 8, POINTS + 1, 4), np.float32)
        for scan in scans:
            width = rng.uniform(0.8, 2.0)
            scan[:-1, :3] = rng.normal(size=(POINTS, 3)) * (width, width, 1.5) + (0, 0, 3)
            scan[:-1, 3] = rng.uniform(size=POINTS)
            scan[-1] = width * 2
        np.save(os.path.join(folder, "row%d.npy" % part), scans)


def main():
    torch.manual_seed(5)
    model = nn.Sequential(
        nn.Conv3d(3, 8, 3, stride=2, padding=1), nn.GELU(),
        nn.Conv3d(8, 16, 3, stride=2, padding=1), nn.GELU(),
        nn.Flatten(), nn.Linear(16 * 27, 32), nn.GELU(), nn.Linear(32, 1))
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    with tempfile.TemporaryDirectory(prefix="orchard-") as folder:
        scan_orchard(folder)
        loader = DataLoader(Scans(folder, Voxelise(GRID)), batch_size=BATCH, num_workers=2,
                            persistent_workers=True)
        steps, start = 0, time.perf_counter()
        for epoch in range(EPOCHS):
            error = 0.0
            for grids, fruit in loader:
                loss = nn.functional.smooth_l1_loss(model(grids).squeeze(1), fruit)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                error += float(loss.detach())
                steps += 1
            print(f"epoch {epoch}: {error:.4f}")
        spent = time.perf_counter() - start
    print(f"{steps} steps, {1e3 * spent / steps:.1f} ms per step")


if __name__ == "__main__":
    main()
