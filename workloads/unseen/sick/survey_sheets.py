# truth: preprocessing_bound
# about: each scanned sheet is turned and resampled pixel by pixel in Python; two workers keep both cores busy with it and the training waits all the same
# also: data_loading_bound
# cure: cured/survey_sheets.py
# whatif: transform=42
# needs: torch numpy
"""Reads the symbols on scanned survey sheets: every training picture is turned, scaled and shaded anew."""
import math
import random
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIDE = 28
KINDS = 8
STEPS = 100
BATCH = 32


def turn(sheet, angle, scale, shade):
    """Rotates about the middle with bilinear interpolation; shade darkens towards the lower edge."""
    middle = (SIDE - 1) / 2
    cosine, sine = math.cos(angle) / scale, math.sin(angle) / scale
    out = np.ones((SIDE, SIDE), dtype=np.float32)
    for y in range(SIDE):
        for x in range(SIDE):
            u = cosine * (x - middle) - sine * (y - middle) + middle
            v = sine * (x - middle) + cosine * (y - middle) + middle
            left, top = math.floor(u), math.floor(v)
            if left < 0 or top < 0 or left >= SIDE - 1 or top >= SIDE - 1:
                continue
            a, b = u - left, v - top
            ink = ((sheet[top, left] * (1 - a) + sheet[top, left + 1] * a) * (1 - b)
                   + (sheet[top + 1, left] * (1 - a) + sheet[top + 1, left + 1] * a) * b)
            out[y, x] = ink * (1 - shade * y / SIDE)
    return out


class Sheets(Dataset):
    def __init__(self, count):
        dice = np.random.default_rng(41)
        self.kinds = dice.integers(KINDS, size=count)
        y, x = np.mgrid[:SIDE, :SIDE] / SIDE - 0.5
        sheets = []
        for kind in self.kinds:
            ripple = np.sin((kind + 3) * 3 * np.hypot(x, y)) if kind % 2 else np.sin((kind + 3) * 5 * x * y)
            sheets.append((ripple > 0.3) * 0.8 + 0.2 * dice.random((SIDE, SIDE)))
        self.sheets = np.asarray(sheets, dtype=np.float32)

    def __len__(self):
        return len(self.kinds)

    def __getitem__(self, index):
        dice = random.Random(index)
        picture = turn(self.sheets[index], dice.uniform(-0.4, 0.4), dice.uniform(0.9, 1.2), dice.random() * 0.5)
        return torch.from_numpy(picture).unsqueeze(0), int(self.kinds[index])


def main():
    torch.manual_seed(17)
    torch.set_num_threads(1)
    loader = DataLoader(Sheets(STEPS * BATCH), batch_size=BATCH, shuffle=True, num_workers=2)
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 49, KINDS))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    right = 0
    began = time.perf_counter()
    for pictures, kinds in loader:
        scores = model(pictures)
        loss = nn.functional.cross_entropy(scores, kinds)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right += (scores.argmax(1) == kinds).sum()
    took = time.perf_counter() - began
    print(f"{right.item() / (STEPS * BATCH):.1%} right; {STEPS} steps, {1000 * took / STEPS:.2f} ms each, {took:.2f} s")


if __name__ == "__main__":
    main()
