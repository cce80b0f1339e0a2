# truth: memory_leak
# about: the grid of basis values for a pose is kept by an lru_cache without a limit, but every step draws a new random pose, so nothing is ever found again and the cache grows by megabytes a step
# also: allocation_churn preprocessing_bound data_loading_bound
# cure: cured/orbital_poses.py
# gain: none
# needs: torch
"""Electron densities of small molecules from rotated orbitals: a net learns the coefficients from images of the density."""
import functools
import math
import random
import time

import torch
from torch import nn

GRID = 128
ORBITALS = 32
STEPS = 200


@functools.lru_cache(maxsize=None)
def basis(angle, tilt):
    """Gaussian orbitals around a ring of centres, seen under this pose, on the grid."""
    line = torch.linspace(-3, 3, GRID)
    y, x = torch.meshgrid(line, line, indexing="ij")
    out = torch.empty(ORBITALS, GRID, GRID)
    for k in range(ORBITALS):
        phi = 2 * math.pi * k / ORBITALS + angle
        cx, cy = 1.8 * math.cos(phi), 1.8 * math.sin(phi) * math.cos(tilt)
        rr = (x - cx) ** 2 + (y - cy) ** 2
        out[k] = torch.exp(-(1 + 0.1 * k) * rr) * (1 + 0.3 * (x - cx) * (k % 3))
    return out


class DensityNet(nn.Module):
    def __init__(self, ch=20):
        super().__init__()
        self.stem = nn.Conv2d(1, ch, 5, stride=4, padding=2)
        self.mid = nn.Conv2d(ch, 2 * ch, 3, stride=2, padding=1)
        self.deep = nn.Conv2d(2 * ch, 2 * ch, 3, padding=1)
        self.head = nn.Linear(2 * ch * 9, ORBITALS)

    def forward(self, image):
        h = torch.relu(self.stem(image))
        h = torch.relu(self.mid(h))
        h = torch.relu(self.deep(h))
        return self.head(nn.functional.adaptive_avg_pool2d(h, 3).flatten(1))


def batches(rng, steps, size=6):
    for _ in range(steps):
        phi = basis(rng.uniform(0, 2 * math.pi), rng.uniform(0, 1.2))
        coeff = torch.randn(size, ORBITALS)
        density = torch.tensordot(coeff, phi, 1) ** 2
        yield density.unsqueeze(1), coeff.abs()


def main():
    torch.manual_seed(52)
    torch.set_num_threads(2)
    net = DensityNet()
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    began = time.perf_counter()
    for step, (image, coeff) in enumerate(batches(random.Random(52), STEPS), 1):
        loss = nn.functional.mse_loss(net(image), coeff)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 50 == 0:
            print("step %d: %.4f" % (step, loss.item()))
    print("%.2f ms per step" % (1e3 * (time.perf_counter() - began) / STEPS))


if __name__ == "__main__":
    main()
