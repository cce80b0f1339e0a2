#!/usr/bin/env python3
# truth: none
# about: a residual convolutional net on pictures that lie in memory as bytes; the step is convolutions, nothing waits
# needs: torch numpy
"""Species of moss from 32 x 32 pictures of the leaf: a small residual net, all cores, single precision."""
import os
import time

import numpy as np
import torch
from torch import nn

PICTURES, SPECIES, BATCH, EPOCHS = 1280, 9, 64, 7


def herbarium(rng):
    """Leaf pictures: a midrib, a margin and cells whose size tells the species."""
    species = rng.integers(SPECIES, size=PICTURES)
    y, x = np.mgrid[0:32, 0:32].astype(np.float32)
    pictures = np.empty((PICTURES, 3, 32, 32), np.uint8)
    for i, kind in enumerate(species):
        cells = np.sin(x * (0.3 + 0.1 * kind)) * np.cos(y * (0.3 + 0.1 * kind))
        rib = np.exp(-((x - 16 + rng.normal()) ** 2) / 6)
        green = 110 + 60 * cells + 50 * rib + rng.normal(0, 20, (32, 32))
        pictures[i] = np.clip(np.stack([green * 0.6, green, green * 0.4]), 0, 255)
    return torch.from_numpy(pictures), torch.from_numpy(species)


class Residual(nn.Module):
    def __init__(self, a, b, stride):
        super().__init__()
        self.one = nn.Conv2d(a, b, 3, stride, 1, bias=False)
        self.two = nn.Conv2d(b, b, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(b), nn.BatchNorm2d(b)
        self.skip = nn.Conv2d(a, b, 1, stride, bias=False) if stride > 1 or a != b else nn.Identity()

    def forward(self, x):
        y = torch.relu(self.norm1(self.one(x)))
        return torch.relu(self.norm2(self.two(y)) + self.skip(x))


def main():
    torch.manual_seed(2)
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    pictures, species = herbarium(np.random.default_rng(2))
    model = nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU(),
                          Residual(32, 32, 1), Residual(32, 64, 2), Residual(64, 128, 2),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, SPECIES))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    steps, begin = 0, time.perf_counter()
    for epoch in range(EPOCHS):
        right = torch.zeros((), dtype=torch.long)
        for pick in torch.randperm(PICTURES).split(BATCH):
            picture = pictures[pick].float().sub_(110).div_(60)
            guess = model(picture)
            loss = nn.functional.cross_entropy(guess, species[pick])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += (guess.argmax(1) == species[pick]).sum()
            steps += 1
        print(f"epoch {epoch + 1}: {right.item() / PICTURES:.1%} right")
    seconds = time.perf_counter() - begin
    print(f"{steps} steps in {seconds:.2f} s, {1000 * seconds / steps:.1f} ms a step")


if __name__ == "__main__":
    main()
