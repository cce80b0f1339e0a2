# truth: none
# about: gradients of four parts of a batch are added up before each update, and a small held-out set is looked at only every sixty updates; nearly all of the time is the network itself
# needs: torch numpy
"""Volcanic tremor or wind? Three-component seismograms, trained with accumulated gradients."""
import argparse

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

SAMPLES = 512


def seismograms(count, rng):
    t = np.arange(SAMPLES) / 50
    tremor = rng.integers(0, 2, count)
    noise = rng.normal(size=(count, 3, SAMPLES))
    phase = rng.uniform(0, 2 * np.pi, (count, 3, 1))
    hum = np.sin(2 * np.pi * rng.uniform(1, 3, (count, 1, 1)) * t + phase)
    gust = np.cumsum(noise, 2) / 15
    signal = np.where(tremor[:, None, None] == 1, noise + 0.8 * hum, noise + 0.4 * gust)
    return torch.from_numpy(signal.astype(np.float32)), torch.from_numpy(tremor)


class TremorNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.front = nn.Conv1d(3, width, 15, stride=2, padding=7)
        self.middle = nn.Conv1d(width, 2 * width, 9, stride=2, padding=4)
        self.back = nn.Conv1d(2 * width, 2 * width, 5, padding=2)
        self.head = nn.Linear(2 * width, 2)

    def forward(self, x):
        for layer in (self.front, self.middle, self.back):
            x = F.relu(layer(x))
        return self.head(x.mean(-1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=240)
    parser.add_argument("--parts", type=int, default=4)
    parser.add_argument("--part-size", type=int, default=24)
    args = parser.parse_args()
    torch.manual_seed(9)
    rng = np.random.default_rng(9)
    waves, tremor = seismograms(4000, rng)
    held_waves, held_tremor = seismograms(240, rng)
    net = TremorNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for update in range(1, args.updates + 1):
        optimizer.zero_grad()
        for _ in range(args.parts):
            rows = torch.randint(len(waves), (args.part_size,))
            loss = F.cross_entropy(net(waves[rows]), tremor[rows]) / args.parts
            loss.backward()
        optimizer.step()
        if update % 60 == 0:
            with torch.no_grad():
                right = (net(held_waves).argmax(1) == held_tremor).float().mean()
            print(f"update {update}: {right.item():.1%} of the held-out windows")


if __name__ == "__main__":
    main()
