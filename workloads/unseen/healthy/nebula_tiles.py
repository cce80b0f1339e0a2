# truth: none
# about: a convolutional network reads tiles of sky plates out of one mapped file; one worker that stays prepares them in a small part of the step's time
# needs: torch numpy
"""Kinds of nebulae, from tiles cut out of sky plates."""
import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

TILES, SIDE, KINDS = 1536, 64, 5


class Plates(Dataset):
    def __init__(self, path):
        self.sky = np.load(path, mmap_mode="r")
        self.kind = np.random.default_rng(17).integers(0, KINDS, TILES)

    def __len__(self):
        return TILES

    def __getitem__(self, i):
        tile = torch.from_numpy(self.sky[i].astype(np.float32)).div_(255)
        return tile, int(self.kind[i])


class NebulaNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(3, 32, 5, stride=2, padding=2)
        self.b = nn.Conv2d(32, 48, 3, padding=1)
        self.c = nn.Conv2d(48, 64, 3, stride=2, padding=1)
        self.out = nn.Linear(64, KINDS)

    def forward(self, x):
        x = F.relu(self.a(x))
        x = F.relu(self.b(x))
        x = F.relu(self.c(x))
        return self.out(x.mean((2, 3)))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=4)
    args = ap.parse_args()
    torch.manual_seed(17)
    torch.set_num_threads(2)
    with tempfile.TemporaryDirectory(prefix="plates") as folder:
        path = Path(folder) / "plates.npy"
        kinds = np.random.default_rng(17).integers(0, KINDS, TILES)
        sky = np.random.default_rng(18).integers(0, 160, (TILES, 3, SIDE, SIDE), dtype=np.uint8)
        sky[np.arange(TILES), kinds % 3, ::2] += (20 + 12 * kinds).astype(np.uint8)[:, None, None]
        np.save(path, sky)
        del sky
        loader = DataLoader(Plates(path), batch_size=64, shuffle=True, num_workers=1, persistent_workers=True)
        net = NebulaNet()
        opt = torch.optim.Adam(net.parameters(), 1e-3)
        began, cpu, n = time.perf_counter(), time.process_time(), 0
        for epoch in range(args.epochs):
            seen = 0.0
            for tile, kind in loader:
                loss = F.cross_entropy(net(tile), kind)
                opt.zero_grad(set_to_none=True)
                loss.backward()
                opt.step()
                seen += loss.item()
                n += 1
            print(f"epoch {epoch}: {seen / len(loader):.3f}")
        print(f"{n} steps, {time.perf_counter() - began:.1f} s, cpu {1e3 * (time.process_time() - cpu) / n:.1f} ms a step")


if __name__ == "__main__":
    main()
