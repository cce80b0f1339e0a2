# truth: none
# about: tells cheeses by photos of their rind; two workers read and crop the photos well within the time that a step takes
# needs: torch numpy
"""Tells cheeses apart by photos of their rind. Photos lie in a folder, two workers read ahead."""
import os
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIDE, KEPT, PHOTOS, BATCH, EPOCHS = 72, 64, 480, 32, 6


def photograph(folder):
    rng = np.random.default_rng(61)
    grain = rng.integers(3, 12, 5)
    for i in range(PHOTOS):
        small = rng.integers(0, 255, (3, int(grain[i % 5]), int(grain[i % 5])), dtype=np.uint8)
        big = np.kron(small, np.ones((1, SIDE // small.shape[1] + 1, SIDE // small.shape[2] + 1), np.uint8))
        np.save(os.path.join(folder, "rind%04d.npy" % i), big[:, :SIDE, :SIDE])


class Rinds(Dataset):
    def __init__(self, folder):
        self.folder = folder

    def __len__(self):
        return PHOTOS

    def __getitem__(self, i):
        photo = np.load(os.path.join(self.folder, "rind%04d.npy" % i))
        top, left = torch.randint(0, SIDE - KEPT + 1, (2,)).tolist()
        part = torch.from_numpy(photo[:, top:top + KEPT, left:left + KEPT].copy())
        return part, i % 5


def block(before, after):
    return nn.Sequential(nn.Conv2d(before, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU(inplace=True),
                         nn.MaxPool2d(2))


def main():
    torch.manual_seed(61)
    with tempfile.TemporaryDirectory(prefix="rinds-") as folder:
        photograph(folder)
        loader = DataLoader(Rinds(folder), batch_size=BATCH, shuffle=True, num_workers=2, persistent_workers=True)
        model = nn.Sequential(block(3, 32), block(32, 64), block(64, 128), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                              nn.Linear(128, 5))
        optimizer = torch.optim.SGD(model.parameters(), lr=.05, momentum=.9)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
        steps, began = 0, time.perf_counter()
        for epoch in range(EPOCHS):
            total = 0.0
            for photo, cheese in loader:
                optimizer.zero_grad(set_to_none=True)
                loss = nn.functional.cross_entropy(model(photo.float().div_(255)), cheese)
                loss.backward()
                optimizer.step()
                total += loss.item()
                steps += 1
            schedule.step()
            print("epoch %d: loss %.3f" % (epoch, total / len(loader)))
        took = time.perf_counter() - began
    print("%d steps, %.1f ms per step" % (steps, took / steps * 1e3))


if __name__ == "__main__":
    main()
