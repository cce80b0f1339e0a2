# truth: none
# about: density of grain compositions by a normalizing flow of affine couplings, in memory, large batches: all the time is matrix products
# needs: torch numpy
"""Provenance of river sands: log density of quartz trace-element compositions under a coupling flow."""
import math

import numpy as np
import torch
from torch import nn

ELEMENTS = 16


def grains(n, seed):
    rng = np.random.default_rng(seed)
    source = rng.integers(0, 5, n)
    mixing = rng.normal(0, 0.6, (5, ELEMENTS, ELEMENTS))
    base = rng.normal(0, 1, (n, ELEMENTS))
    x = np.tanh(np.einsum("nij,nj->ni", mixing[source], base)) + 0.8 * source[:, None] - 1.6
    return torch.from_numpy(x.astype(np.float32))


class Coupling(nn.Module):
    def __init__(self, flip, hidden=256):
        super().__init__()
        self.flip = flip
        half = ELEMENTS // 2
        self.net = nn.Sequential(nn.Linear(half, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
                                 nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 2 * half))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        a, b = x.chunk(2, 1)
        if self.flip:
            a, b = b, a
        s, t = self.net(a).chunk(2, 1)
        s = torch.tanh(s)
        b = b * s.exp() + t
        return torch.cat([b, a] if self.flip else [a, b], 1), s.sum(1)


class Flow(nn.Module):
    def __init__(self, depth=6):
        super().__init__()
        self.layers = nn.ModuleList(Coupling(i % 2 == 1) for i in range(depth))

    def log_density(self, x):
        volume = 0.0
        for layer in self.layers:
            x, v = layer(x)
            volume = volume + v
        return -0.5 * (x * x).sum(1) - 0.5 * ELEMENTS * math.log(2 * math.pi) + volume


def main():
    torch.manual_seed(14)
    sand = grains(40000, 14)
    held = sand[-2000:]
    sand = sand[:-2000]
    flow = Flow()
    opt = torch.optim.Adam(flow.parameters(), lr=1e-3)
    for step in range(1, 91):
        batch = sand[torch.randint(0, len(sand), (1024,))]
        loss = -flow.log_density(batch).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 30 == 0:
            print(f"step {step}: {loss.item():.3f} nats")
    flow.eval()
    with torch.no_grad():
        print(f"held out: {-flow.log_density(held).mean().item():.3f} nats")


if __name__ == "__main__":
    main()
