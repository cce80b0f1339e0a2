#!/usr/bin/env python3
# truth: precision_unused
# about: the arrays come from numpy in double precision and the network was made double to match them, though the measurements are good to three digits
# cure: --dtype float32
# needs: torch numpy
"""Far field of a patch antenna from its geometry: a residual net learns what the field solver says.

The solver's table is in memory; mini-batches are drawn from it by index.
"""
import argparse
import time

import numpy as np
import torch
from torch import nn

GEOMETRY, ANGLES, DESIGNS, WIDTH, BATCH, STEPS = 14, 181, 6000, 384, 256, 130


def field_table(rng):
    """Geometries and the gain, in dB, at each of ANGLES angles, as a solver would tabulate it."""
    geometry = rng.uniform(-1, 1, (DESIGNS, GEOMETRY))
    theta = np.linspace(-np.pi, np.pi, ANGLES)
    width = 3 + geometry[:, :1]
    gain = np.abs(np.cos(width * np.sin(theta)) * np.cos(theta / 2)) + 0.1 * np.abs(geometry[:, 1:2])
    gain += 0.05 * np.sin(np.outer(geometry[:, 2], np.arange(ANGLES)))
    return geometry, 20 * np.log10(gain + 0.05)


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.wide, self.back = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.back(torch.relu(self.wide(self.norm(x))))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dtype", choices=["float64", "float32"], default="float64")
    dtype = getattr(torch, parser.parse_args().dtype)
    torch.manual_seed(17)
    geometry, gain = (torch.from_numpy(table).to(dtype) for table in field_table(np.random.default_rng(17)))
    model = nn.Sequential(nn.Linear(GEOMETRY, WIDTH), Residual(), Residual(), Residual(), nn.Linear(WIDTH, ANGLES))
    model.to(dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=2e-3, momentum=0.9, nesterov=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    begin = time.perf_counter()
    for step in range(STEPS):
        pick = torch.randint(DESIGNS, (BATCH,))
        loss = nn.functional.mse_loss(model(geometry[pick]), gain[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 30 == 0:
            print(f"step {step}: {loss.item():.3f} dB^2")
    seconds = time.perf_counter() - begin
    print(f"{STEPS} steps in {seconds:.2f} s, {1000 * seconds / STEPS:.1f} ms a step")


if __name__ == "__main__":
    main()
