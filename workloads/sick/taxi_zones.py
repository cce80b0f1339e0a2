# truth: communication_bound
# about: two processes average their gradients with one all_reduce for every single parameter, some sixty small messages after each backward, one after the other; in one flat buffer the same numbers need a single message
# also: sync_stall
# cure: cured/taxi_zones.py
# env: OPENBLAS_NUM_THREADS=1
# needs: torch cores:2
"""Demand for taxis in the zones of a city, trained by two processes on halves of the week."""
import argparse
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

ZONES, WORLD = 64, 2


class Zone(nn.Module):
    """exchanges with the neighbours on the ring road"""

    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.own = nn.Linear(width, width)
        self.left = nn.Linear(width, width, bias=False)
        self.right = nn.Linear(width, width, bias=False)

    def forward(self, h):
        z = self.norm(h)
        return h + torch.tanh(self.own(z) + self.left(z.roll(1, 1)) + self.right(z.roll(-1, 1)))


class City(nn.Module):
    def __init__(self, width=32, depth=10):
        super().__init__()
        self.enter = nn.Linear(6, width)
        self.zones = nn.ModuleList(Zone(width) for _ in range(depth))
        self.leave = nn.Linear(width, 1)

    def forward(self, x):
        h = self.enter(x)
        for zone in self.zones:
            h = zone(h)
        return self.leave(h).squeeze(2)


def average(model):
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad.div_(WORLD)


def half_week(rank, steps, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + os.path.join(folder, "meet"), rank=rank, world_size=WORLD)
    torch.manual_seed(6)
    city = City()
    optimizer = torch.optim.SGD(city.parameters(), lr=0.002)
    g = torch.Generator().manual_seed(100 + rank)
    for step in range(steps):
        hour = torch.randn(8, ZONES, 6, generator=g)
        demand = hour[..., 0] * hour[..., 1].roll(1, 1) + hour[..., 2]
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(city(hour), demand)
        loss.backward()
        average(city)
        optimizer.step()
        if rank == 0 and step % 20 == 19:
            print(f"{step + 1}: {loss.item():.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=85)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(half_week, args=(args.steps, folder), nprocs=WORLD)
