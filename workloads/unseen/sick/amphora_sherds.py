#!/usr/bin/env python3
# truth: data_loading_bound
# about: every triplet of potsherd outlines is fetched by three requests, one after the other, from the excavation's remote archive (the request's latency is a sleep), and the loader's single worker makes all of them, so the trainer waits for it in nearly every step
# also: io_wait
# advice: num_workers
# cure: --workers 6
# whatif: workers=6
# needs: torch numpy
"""Which potsherds come from the same vessel: outlines of sherds, embedded with a triplet loss."""
import argparse
import os
import shutil
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

POINTS = 128
VESSELS = 90
SHERDS = 6


def dig(folder):
    """The season's finds: each vessel has a profile, each sherd a worn and noisy copy of it."""
    rng = np.random.default_rng(41)
    grid = np.linspace(0.0, 1.0, POINTS)
    for vessel in range(VESSELS):
        waves = rng.normal(size=(4, 5))
        freq = np.arange(1, 6)
        profile = waves @ np.sin(np.pi * freq[:, None] * grid[None])
        for sherd in range(SHERDS):
            worn = profile + 0.35 * rng.normal(size=profile.shape)
            np.save(os.path.join(folder, f"v{vessel:03d}_s{sherd}.npy"), worn.astype(np.float32))


class Archive:
    """The archive of the excavation, in another town."""

    def __init__(self, folder):
        self.folder = folder

    def outline(self, vessel, sherd):
        time.sleep(0.0025 + 0.0003 * ((vessel * 7 + sherd) % 6))  # the way there and back
        return np.load(os.path.join(self.folder, f"v{vessel:03d}_s{sherd}.npy"))


class Triplets(Dataset):
    def __init__(self, archive, count):
        self.archive = archive
        rng = np.random.default_rng(5)
        self.rows = []
        for _ in range(count):
            a, b = rng.choice(VESSELS, 2, replace=False)
            i, j = rng.choice(SHERDS, 2, replace=False)
            self.rows.append((int(a), int(i), int(j), int(b), int(rng.integers(SHERDS))))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        a, i, j, b, k = self.rows[index]
        three = [self.archive.outline(a, i), self.archive.outline(a, j), self.archive.outline(b, k)]
        return torch.from_numpy(np.stack(three))


class Embedder(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(4, width, 7, padding=3), nn.GELU(),
            nn.Conv1d(width, width, 5, padding=2), nn.GELU(), nn.MaxPool1d(2),
            nn.Conv1d(width, 2 * width, 5, padding=2), nn.GELU(), nn.AdaptiveAvgPool1d(4))
        self.head = nn.Linear(8 * width, 32)

    def forward(self, x):
        return nn.functional.normalize(self.head(self.body(x).flatten(1)), dim=1)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--workers", type=int, default=1)
    options.add_argument("--triplets", type=int, default=720)
    options = options.parse_args()
    torch.manual_seed(0)
    folder = tempfile.mkdtemp(prefix="sherds")
    try:
        dig(folder)
        loader = DataLoader(Triplets(Archive(folder), options.triplets), batch_size=8, shuffle=True,
                            num_workers=options.workers)
        model = Embedder()
        optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
        begin, seen = time.perf_counter(), 0.0
        for triplet in loader:
            anchor, same, other = model(triplet.flatten(0, 1)).view(-1, 3, 32).unbind(1)
            loss = nn.functional.triplet_margin_loss(anchor, same, other, margin=0.4)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen += float(loss.detach())
        took = time.perf_counter() - begin
        print(f"{len(loader)} steps, loss {seen / len(loader):.3f}, {took:.2f} s, {1e3 * took / len(loader):.1f} ms a step")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
