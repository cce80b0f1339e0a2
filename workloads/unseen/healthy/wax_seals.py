# truth: none
# about: a convolutional autoencoder on scans that lie in memory as float32; convolutions take nearly the whole step and nothing waits
# needs: torch numpy
"""Restores worn wax seals: a denoising autoencoder on scans of their relief."""
import argparse

import numpy as np
import torch
from torch import nn


def seals(count, side, seed):
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[-1:1:side * 1j, -1:1:side * 1j].astype(np.float32)
    radius, angle = np.hypot(x, y), np.arctan2(y, x)
    relief = np.empty((count, 1, side, side), np.float32)
    for n in range(count):
        petals, ring = rng.integers(3, 9), rng.uniform(0.5, 0.9)
        relief[n, 0] = np.exp(-40 * (radius - ring) ** 2) + (radius < ring) * 0.5 * np.cos(petals * angle + rng.uniform(0, 6))
    return torch.from_numpy(relief)


def down(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 4, stride=2, padding=1), nn.BatchNorm2d(b), nn.ReLU())


def up(a, b):
    return nn.Sequential(nn.ConvTranspose2d(a, b, 4, stride=2, padding=1), nn.BatchNorm2d(b), nn.ReLU())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=140)
    parser.add_argument("--batch", type=int, default=16)
    args = parser.parse_args()
    torch.manual_seed(40)
    relief = seals(480, 48, seed=40)
    model = nn.Sequential(down(1, 24), down(24, 48), nn.Conv2d(48, 48, 3, padding=1), nn.ReLU(),
                          up(48, 24), up(24, 12), nn.Conv2d(12, 1, 3, padding=1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(1, args.steps + 1):
        clean = relief[torch.randint(len(relief), (args.batch,))]
        worn = clean + 0.3 * torch.randn_like(clean)
        loss = nn.functional.mse_loss(model(worn), clean)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 35 == 0:
            print(f"step {step}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
