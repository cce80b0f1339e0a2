# The same as meter_digits.py beside the folder, with the threshold in numpy.
"""Reads the digit on the drum of a gas meter from a small photo."""
import os
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIDE, RADIUS, BATCH, PHOTOS, EPOCHS = 64, 4, 32, 2720, 3


def photos(count):
    rng = np.random.default_rng(21)
    shapes = rng.random((10, 5, 4)) > .5
    digits = rng.integers(0, 10, count)
    taken = np.empty((count, SIDE, SIDE), np.uint8)
    light = np.linspace(40, 160, SIDE)
    for i, digit in enumerate(digits):
        drum = np.kron(shapes[digit], np.ones((12, 15)))
        photo = np.tile(np.roll(light, rng.integers(SIDE)), (SIDE, 1))
        photo[2:62, 2:62] += 60 * drum
        taken[i] = np.clip(photo + rng.normal(0, 8, photo.shape), 0, 255)
    return taken, digits


EDGES = np.arange(SIDE)
LOW, HIGH = np.maximum(0, EDGES - RADIUS), np.minimum(SIDE, EDGES + RADIUS + 1)
AREA = np.outer(HIGH - LOW, HIGH - LOW)


def against_surroundings(photo):
    """Which pixels are brighter than the mean of the square around them (by an integral image)."""
    above = np.zeros((SIDE + 1, SIDE + 1), np.int64)
    above[1:, 1:] = photo.cumsum(0, dtype=np.int64).cumsum(1)
    bands = above[HIGH] - above[LOW]
    around = bands[:, HIGH] - bands[:, LOW]
    return (photo * AREA > around).astype(np.float32)


class Meters(Dataset):
    def __init__(self):
        self.taken, self.digits = photos(PHOTOS)

    def __len__(self):
        return len(self.digits)

    def __getitem__(self, i):
        return torch.from_numpy(against_surroundings(self.taken[i])).unsqueeze(0), int(self.digits[i])


def main():
    torch.manual_seed(21)
    loader = DataLoader(Meters(), batch_size=BATCH, shuffle=True, num_workers=os.cpu_count(),
                        persistent_workers=True)
    model = nn.Sequential(
        nn.Conv2d(1, 16, 5, stride=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 6 * 6, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    steps = right = 0
    began = time.perf_counter()
    for epoch in range(EPOCHS):
        for photo, digit in loader:
            scores = model(photo)
            loss = nn.functional.cross_entropy(scores, digit)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            right += int((scores.argmax(1) == digit).sum())
            steps += 1
    took = time.perf_counter() - began
    print("%d steps, %.0f %% right, %.1f ms per step" % (steps, right / (PHOTOS * EPOCHS) * 100, took / steps * 1e3))


if __name__ == "__main__":
    main()
