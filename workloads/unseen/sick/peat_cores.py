#!/usr/bin/env python3
# truth: allocation_churn
# about: the calibration of the hyperspectral scans makes a new 36 MB tensor for every operation of its chain and gives it back at once, so each step has tens of thousands of page faults; cured, it works in place in two buffers that are kept
# cure: --calibration kept
# needs: torch
"""How far peat has decayed, pixel by pixel, from hyperspectral scans of drilled cores."""
import argparse
import resource
import time

import torch
from torch import nn

BANDS, SIDE, BATCH = 352, 80, 4


class Fresh(nn.Module):
    """Counts of the camera to reflectance, then every pixel's spectrum to mean 0 and deviation 1."""

    def __init__(self, dark, white):
        super().__init__()
        self.register_buffer("dark", dark)
        self.register_buffer("span", white - dark)

    @torch.no_grad()
    def forward(self, counts):
        reflectance = (counts.float() - self.dark) / self.span
        centred = reflectance - reflectance.mean(1, keepdim=True)
        return centred / (centred * centred).mean(1, keepdim=True).sqrt()


class Kept(Fresh):
    def __init__(self, dark, white):
        super().__init__(dark, white)
        self.cube = torch.empty(BATCH, BANDS, SIDE, SIDE)
        self.squares = torch.empty_like(self.cube)

    @torch.no_grad()
    def forward(self, counts):
        cube = self.cube.copy_(counts).sub_(self.dark).div_(self.span)
        cube.sub_(cube.mean(1, keepdim=True))
        return cube.div_(torch.mul(cube, cube, out=self.squares).mean(1, keepdim=True).sqrt())


class Decay(nn.Module):
    def __init__(self, calibrate):
        super().__init__()
        self.calibrate = calibrate
        self.head = nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 1, 1))

    def forward(self, counts):
        cube = self.calibrate(counts)
        groups = cube.view(len(cube), 16, BANDS // 16, SIDE, SIDE).mean(2)
        return self.head(groups).squeeze(1)


def scans(count):
    torch.manual_seed(8)
    decay = nn.functional.interpolate(torch.rand(count, 1, 10, 10), size=SIDE, mode="bilinear", align_corners=False)
    wave = torch.linspace(0, 1, BANDS).view(1, BANDS, 1, 1)
    counts = torch.empty(count, BANDS, SIDE, SIDE, dtype=torch.int16)
    for core in range(count):
        spectrum = 900 + 2500 * wave * (1 - 0.6 * decay[core:core + 1]) + 400 * (wave - 0.5) ** 2
        counts[core] = (spectrum + 40 * torch.randn(1, 1, SIDE, SIDE)).to(torch.int16)
    return counts, decay.squeeze(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--calibration", choices=("fresh", "kept"), default="fresh")
    parser.add_argument("--steps", type=int, default=64)
    args = parser.parse_args()
    counts, decay = scans(12)
    dark = torch.full((1, BANDS, 1, 1), 120.0)
    white = torch.linspace(3600, 4000, BANDS).view(1, BANDS, 1, 1)
    model = Decay((Kept if args.calibration == "kept" else Fresh)(dark, white))
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    begin = time.perf_counter()
    for step in range(args.steps):
        first = step * BATCH % len(counts)
        loss = nn.functional.mse_loss(model(counts[first:first + BATCH]), decay[first:first + BATCH])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    took = time.perf_counter() - begin
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
    print(f"loss {loss.item():.4f}, {args.steps} steps, {took:.2f} s, {1e3 * took / args.steps:.1f} ms and "
          f"{faults // args.steps} page faults a step")


if __name__ == "__main__":
    main()
