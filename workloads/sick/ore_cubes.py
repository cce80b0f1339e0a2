#!/usr/bin/env python3
# truth: too_many_workers
# about: the cubes lie ready in memory and a sample costs nothing to make, but eight workers are kept to copy them into shared memory, batch by batch, for a process that could have stacked them itself in less time
# also: data_loading_bound collate_bound allocation_churn oversubscribed
# cure: --workers 0
# whatif: workers=0
# needs: torch numpy
"""Which ore is in a drill core, from hyperspectral cubes: bands weighed by a small spectral net."""
import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

BANDS, SIDE, CUBES, ORES = 96, 48, 192, 7


class Cores(Dataset):
    def __init__(self, rng):
        signatures = rng.random((ORES, BANDS), dtype=np.float32)
        self.ore = rng.integers(ORES, size=CUBES)
        self.cubes = torch.empty(CUBES, BANDS, SIDE, SIDE)
        for i, ore in enumerate(self.ore):
            noise = rng.random((SIDE, SIDE), dtype=np.float32)
            self.cubes[i] = torch.from_numpy(signatures[ore][:, None, None] * (0.6 + 0.8 * noise))

    def __len__(self):
        return CUBES

    def __getitem__(self, i):
        return self.cubes[i], int(self.ore[i])


class SpectralNet(nn.Module):
    """Every fourth pixel is enough for the ore of the whole core."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Sequential(nn.Linear(BANDS, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        self.head = nn.Linear(32, ORES)

    def forward(self, cube):
        pixels = cube[:, :, ::4, ::4].flatten(2).transpose(1, 2)
        return self.head(self.mix(pixels).mean(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=36)
    args = parser.parse_args()
    torch.manual_seed(21)
    cores = Cores(np.random.default_rng(21))
    loader = DataLoader(cores, batch_size=16, shuffle=True, num_workers=args.workers,
                        persistent_workers=args.workers > 0)
    model = SpectralNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    steps, begin = 0, time.perf_counter()
    for epoch in range(args.epochs):
        right = 0
        for cube, ore in loader:
            guess = model(cube)
            loss = nn.functional.cross_entropy(guess, ore)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += (guess.argmax(1) == ore).sum().item()
            steps += 1
        if epoch % 7 == 6:
            print(f"epoch {epoch + 1}: {right / CUBES:.0%}")
    seconds = time.perf_counter() - begin
    print(f"{steps} steps in {seconds:.2f} s, {1000 * seconds / steps:.1f} ms a step")


if __name__ == "__main__":
    main()
