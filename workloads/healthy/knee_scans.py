#!/usr/bin/env python3
# truth: none
# about: slices of knee scans are read whole from one file each by one persistent worker, faster than the segmentation network on both cores needs them
# needs: torch numpy
"""Cartilage in knee scans, pixel by pixel: a small encoder and decoder with a skip connection."""
import os
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class KneeSlices(Dataset):
    def __init__(self, root):
        self.paths = [os.path.join(root, name) for name in sorted(os.listdir(root))]

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        scan = np.load(self.paths[i])
        return torch.from_numpy(scan[0][None].astype(np.float32) / 255), torch.from_numpy(scan[1].astype(np.int64))


class Segmenter(nn.Module):
    def __init__(self, c=16):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, c, 3, padding=1), nn.ReLU(), nn.Conv2d(c, c, 3, padding=1), nn.ReLU())
        self.deep = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(c, 2 * c, 3, padding=1), nn.ReLU(),
                                  nn.Conv2d(2 * c, 2 * c, 3, padding=1), nn.ReLU(), nn.ConvTranspose2d(2 * c, c, 2, 2))
        self.out = nn.Sequential(nn.Conv2d(2 * c, c, 3, padding=1), nn.ReLU(), nn.Conv2d(c, 2, 1))

    def forward(self, x):
        h = self.down(x)
        return self.out(torch.cat([h, self.deep(h)], 1))


def make_scans(root, count=256, side=64):
    rng = np.random.default_rng(9)
    yy, xx = np.mgrid[:side, :side]
    for i in range(count):
        cy, cx, r = rng.uniform(24, 40), rng.uniform(24, 40), rng.uniform(10, 18)
        ring = np.abs(np.hypot(yy - cy, xx - cx) - r) < 3
        scan = np.clip(60 + 120 * ring + rng.normal(0, 25, (side, side)), 0, 255)
        np.save(os.path.join(root, f"slice{i:03d}.npy"), np.stack([scan, ring]).astype(np.uint8))


def main():
    torch.manual_seed(9)
    torch.set_num_threads(2)
    with tempfile.TemporaryDirectory() as root:
        make_scans(root)
        loader = DataLoader(KneeSlices(root), batch_size=16, shuffle=True, num_workers=1, persistent_workers=True)
        model = Segmenter()
        optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
        steps, begin = 0, time.perf_counter()
        for epoch in range(8):
            for scan, mask in loader:
                loss = nn.functional.cross_entropy(model(scan), mask)
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
                steps += 1
            print(f"epoch {epoch + 1}: loss {loss.item():.3f}")
        print(f"{steps} steps, {1000 * (time.perf_counter() - begin) / steps:.1f} ms a step")


if __name__ == "__main__":
    main()
