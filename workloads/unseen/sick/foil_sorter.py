# truth: allocation_churn
# about: every hyperspectral frame is calibrated by a chain of whole-frame torch expressions, each of which makes a new block of 38 MB; these go back to the system at once, and every step pays the page faults for all of them again
# also: preprocessing_bound
# cure: cured/foil_sorter.py
# needs: torch numpy
"""Sorts foil on a recycling belt by hyperspectral frames.

The camera gives 16-bit frames of 400 x 300 pixels in 80 bands. A frame is calibrated with the dark and
the white reference, flattened against the band before, reduced to tiles, and a small
network names the material of every tile.
"""
import time

import torch
from torch import nn

BANDS, HIGH, WIDE, TILE, KINDS, STEPS = 80, 400, 300, 20, 6, 60


class Calibration:
    def __init__(self, dark, white):
        self.dark = dark
        self.gain = 1.0 / (white - dark)

    @torch.no_grad()
    def __call__(self, raw):
        frame = raw.float()
        frame = frame - self.dark
        frame = frame * self.gain
        frame = frame.clamp(0.0, 1.0)
        slope = frame[1:] - frame[:-1]
        return tiles_of(frame), tiles_of(slope)


def tiles_of(cube):
    bands, high, wide = cube.shape
    return cube.view(bands, high // TILE, TILE, wide // TILE, TILE).mean((2, 4)).flatten(1).t()


def belt(dark, white, seed):
    """Eight frames that come by again and again, each with the material of its tiles."""
    g = torch.Generator().manual_seed(seed)
    spectra = torch.rand(KINDS, BANDS, generator=g)
    rows, columns = HIGH // TILE, WIDE // TILE
    frames = []
    for _ in range(8):
        kind = torch.randint(KINDS, (rows, columns), generator=g)
        clean = spectra[kind].permute(2, 0, 1).repeat_interleave(TILE, 1).repeat_interleave(TILE, 2)
        frames.append(((dark + clean * (white - dark)).to(torch.int16), kind.flatten()))
    return frames


def main():
    torch.manual_seed(8)
    dark = 90 + 10 * torch.rand(BANDS, HIGH, WIDE)
    white = 3500 + 300 * torch.rand(BANDS, HIGH, WIDE)
    frames = belt(dark, white, 8)
    calibrate = Calibration(dark, white)
    model = nn.Sequential(nn.Linear(2 * BANDS - 1, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, KINDS))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    began = time.perf_counter()
    for step in range(STEPS):
        raw, kind = frames[step % len(frames)]
        level, slope = calibrate(raw)
        loss = nn.functional.cross_entropy(model(torch.cat([level, slope], 1)), kind)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 9:
            print(f"frame {step + 1} loss {loss.item():.3f}")
    took = time.perf_counter() - began
    print(f"{STEPS} steps, {1000 * took / STEPS:.1f} ms a step")


if __name__ == "__main__":
    main()
