# truth: allocation_churn
# about: matching two frames makes a new 36 MB volume for each operation over the displacements and gives it back at once, so every step faults in tens of thousands of fresh pages; cured, the matching works in place in one volume that is kept
# cure: cured/plume_tracers.py
# env: OMP_NUM_THREADS=1
# needs: torch
"""Particle image velocimetry of a smoke plume: the displacement of tracer particles between two camera frames.

A matching volume over 11 x 11 displacements gives a first guess, and a small network corrects it."""
import itertools

import torch
import torch.nn.functional as F
from torch import nn

SIDE, REACH, PAIRS = 136, 5, 4
SHIFTS = list(itertools.product(range(-REACH, REACH + 1), repeat=2))


class Matcher:
    """Soft argmin over the matching cost of all displacements."""

    def __init__(self, sharpness=6.0):
        self.sharpness = sharpness
        self.shifts = torch.tensor(SHIFTS, dtype=torch.float32)

    @torch.no_grad()
    def __call__(self, first, second):
        first = first * self.sharpness
        padded = F.pad(second * self.sharpness, (REACH,) * 4)
        views = [padded[:, REACH + dy:REACH + dy + SIDE, REACH + dx:REACH + dx + SIDE] for dy, dx in SHIFTS]
        cost = torch.stack(views, dim=1)
        cost = cost - first.unsqueeze(1)
        cost = cost.abs()
        cost = cost - cost.amin(dim=1, keepdim=True)
        near = 1 - cost
        near = near.clamp(min=0)
        near = near / near.sum(dim=1, keepdim=True)
        return (self.shifts.T @ near.flatten(2)).view(PAIRS, 2, SIDE, SIDE)


class Corrector(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.inner = nn.Conv2d(2, width, 5, padding=2, stride=2)
        self.outer = nn.Conv2d(width, 2, 3, padding=1)

    def forward(self, guess):
        h = F.leaky_relu(self.inner(guess), 0.1)
        h = F.interpolate(h, scale_factor=2, mode="nearest")
        return guess + self.outer(h)


def frames(gen):
    """Pairs of frames that moved by whole pixels, and how they moved."""
    smoke = F.avg_pool2d(torch.rand(PAIRS, 1, SIDE + 2, SIDE + 2, generator=gen), 3, stride=1).squeeze(1) * 3
    moves = torch.randint(-REACH, REACH + 1, (PAIRS, 2), generator=gen)
    moved = torch.stack([torch.roll(image, tuple(move.tolist()), (0, 1)) for image, move in zip(smoke, moves)])
    return smoke, moved, moves.float()


def main(steps=64):
    torch.manual_seed(6)
    gen = torch.Generator().manual_seed(60)
    recordings = [frames(gen) for _ in range(8)]
    matcher, corrector = Matcher(), Corrector()
    optimizer = torch.optim.Adam(corrector.parameters(), lr=1e-3)
    for step in range(steps):
        first, second, moves = recordings[step % len(recordings)]
        flow = corrector(matcher(first, second))
        loss = (flow - moves[:, :, None, None]).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % 16 == 0:
            print(f"step {step + 1}: end point error {loss.item():.3f}")


if __name__ == "__main__":
    main()
