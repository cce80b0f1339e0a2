# truth: none
# about: healthy: a point network over clouds that are made once and lie in memory, batches are large products, one process
# env: OPENBLAS_NUM_THREADS=2
# needs: torch
"""Dip and strike of a fault plane from the located aftershocks around it (a cloud of points)."""
import argparse
import math

import torch
from torch import nn


def clouds(count, points, seed):
    g = torch.Generator().manual_seed(seed)
    dip = torch.rand(count, generator=g) * math.pi / 2
    strike = torch.rand(count, generator=g) * 2 * math.pi
    flat = torch.randn(count, points, 3, generator=g) * torch.tensor([3.0, 2.0, 0.2])
    x, y, z = flat.unbind(2)
    c, s = dip.cos()[:, None], dip.sin()[:, None]
    y, z = y * c - z * s, y * s + z * c
    c, s = strike.cos()[:, None], strike.sin()[:, None]
    x, y = x * c - y * s, x * s + y * c
    normal = torch.stack([strike.sin() * dip.sin(), -strike.cos() * dip.sin(), dip.cos()], 1)
    return torch.stack([x, y, z], 2), normal


class PlaneNet(nn.Module):
    def __init__(self, width=384):
        super().__init__()
        self.point = nn.Sequential(nn.Linear(3, width), nn.ReLU(inplace=True), nn.Linear(width, width), nn.ReLU(inplace=True),
                                   nn.Linear(width, width))
        self.plane = nn.Sequential(nn.Linear(width, 128), nn.ReLU(inplace=True), nn.Linear(128, 3))

    def forward(self, cloud):
        return nn.functional.normalize(self.plane(self.point(cloud).amax(1)), dim=1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=110)
    steps = parser.parse_args().steps
    torch.set_num_threads(2)
    torch.manual_seed(0)
    cloud, normal = clouds(2400, 64, 1)
    net = PlaneNet()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    order = torch.Generator().manual_seed(2)
    for step in range(steps):
        rows = torch.randint(0, len(cloud), (64,), generator=order)
        off = 1 - (net(cloud[rows]) * normal[rows]).sum(1).abs()
        optimizer.zero_grad()
        off.mean().backward()
        optimizer.step()
        if step % 25 == 24:
            print(f"{step + 1}: {off.mean().item():.4f}")
