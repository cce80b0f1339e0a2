#!/usr/bin/env python3
"""Stages of healing from photographs of wounds: a small convolutional classifier."""
import os
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIDE, STAGES, PHOTOS, BATCH, EPOCHS = 32, 4, 512, 16, 3


def take_photos(folder, rng):
    """Raw files, one a photograph: height x width x RGB bytes; the stage is in the name."""
    yy, xx = np.mgrid[:SIDE, :SIDE]
    for number in range(PHOTOS):
        stage = number % STAGES
        cy, cx = rng.uniform(12, 20, 2)
        bed = np.exp(-((yy - cy) ** 2 + (xx - cx) ** 2) / (2 * (11 - 2 * stage) ** 2))[..., None]
        skin, wound = rng.uniform(120, 220, 3), np.array([150 + 15 * stage, 40 + 20 * stage, 50])
        photo = skin * (1 - bed) + wound * bed + rng.normal(0, 12, (SIDE, SIDE, 3))
        (folder / f"{number:04d}_{stage}.rgb").write_bytes(photo.clip(0, 255).astype(np.uint8).tobytes())


class GreyWorld:
    """Balances the colours to a grey mean and smooths with the mean of 3 x 3 neighbours."""

    def __call__(self, photo):
        totals = photo.reshape(-1, 3).sum(0, dtype=np.int64)
        gains = (totals.sum() / 3 / np.maximum(totals, 1)).astype(np.float32)
        wide = np.pad(photo.astype(np.float32), ((1, 1), (1, 1), (0, 0)), mode="edge")
        out = sum(wide[dy:dy + SIDE, dx:dx + SIDE] for dy in range(3) for dx in range(3))
        out *= gains / (9 * 255)
        return torch.from_numpy(np.ascontiguousarray(out.transpose(2, 0, 1)))


class Wounds(Dataset):
    def __init__(self, folder, transform):
        self.files = sorted(folder.glob("*.rgb"))
        self.transform = transform

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        file = self.files[index]
        photo = np.frombuffer(file.read_bytes(), np.uint8).reshape(SIDE, SIDE, 3)
        return self.transform(photo), int(file.stem[-1])


class StageNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                                      nn.Conv2d(24, 48, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(4))
        self.head = nn.Linear(48 * 16, STAGES)

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


def train(folder):
    loader = DataLoader(Wounds(folder, GreyWorld()), batch_size=BATCH, shuffle=True, persistent_workers=True,
                        num_workers=len(os.sched_getaffinity(0)))
    net = StageNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    steps, begin = 0, time.perf_counter()
    for epoch in range(EPOCHS):
        right = 0
        for photos, stages in loader:
            scores = net(photos)
            loss = nn.functional.cross_entropy(scores, stages)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += (scores.argmax(1) == stages).sum().item()
            steps += 1
        print(f"epoch {epoch + 1}: {100 * right / PHOTOS:.0f} % right")
    seconds = time.perf_counter() - begin
    print(f"{steps} steps, {1000 * seconds / steps:.1f} ms a step")


if __name__ == "__main__":
    torch.manual_seed(3)
    torch.set_num_threads(1)
    folder = Path(tempfile.mkdtemp(prefix="wounds"))
    try:
        take_photos(folder, np.random.default_rng(3))
        train(folder)
    finally:
        shutil.rmtree(folder)
