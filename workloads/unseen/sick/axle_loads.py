# truth: precision_unused
# about: numpy's arrays are float64, and to fit them the whole network was made float64 too, though the strain gauges have twelve bits; in float32 the convolutions and products take less than half of the time
# cure: --dtype float32
# env: OPENBLAS_NUM_THREADS=1
# needs: torch numpy
"""Weighs lorries in motion: axle loads from strain gauges under a bridge deck."""
import argparse

import numpy as np
import torch
from torch import nn

GAUGES, TICKS, AXLES = 16, 256, 6


def crossings(count, seed):
    rng = np.random.default_rng(seed)
    load = rng.uniform(1, 11, (count, AXLES))
    when = np.sort(rng.uniform(20, 230, (count, AXLES)), 1)
    t = np.arange(TICKS)
    pulse = np.exp(-((t - when[:, :, None]) / 9) ** 2)
    gain = rng.uniform(0.4, 1.0, (GAUGES, AXLES))
    strain = np.einsum("ga,na,nat->ngt", gain, load, pulse) + rng.normal(0, 0.05, (count, GAUGES, TICKS))
    return np.round(strain * 128) / 128, load


class Scale(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.early = nn.Conv1d(GAUGES, width, 7, padding=3)
        self.blocks = nn.ModuleList(nn.Conv1d(width, width, 5, padding=2) for _ in range(2))
        self.down = nn.MaxPool1d(4)
        self.head = nn.Sequential(nn.Linear(width * TICKS // 4, 256), nn.ReLU(), nn.Linear(256, AXLES))

    def forward(self, strain):
        h = self.down(torch.relu(self.early(strain)))
        for block in self.blocks:
            h = h + torch.relu(block(h))
        return self.head(h.flatten(1))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--dtype", default="float64")
    ap.add_argument("--steps", type=int, default=120)
    a = ap.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dtype = getattr(torch, a.dtype)
    strain, load = (torch.from_numpy(v).to(dtype) for v in crossings(1500, 4))
    model = Scale().to(dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    order = torch.Generator().manual_seed(9)
    for step in range(a.steps):
        pick = torch.randint(0, len(load), (48,), generator=order)
        loss = (model(strain[pick]) - load[pick]).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"{step}: {loss.item():.3f} t")


if __name__ == "__main__":
    main()
