# truth: cpu_throttled
# about: the container may use four tenths of a core; the kernel stops the program for the rest of every tenth of a second
# quota: 0.4
# cure: --as-it-is
# needs: torch numpy root cgroup
"""Outlines kelp beds in sea pictures from the air: a small encoder-decoder with one skip, written as functions over a config."""
import sys
import time

import numpy as np
import torch
from torch import nn

CFG = dict(size=48, batch=16, steps=64, channels=(8, 16), lr=3e-3, seed=29)


def coast(rng, cfg):
    y, x = np.mgrid[0:cfg["size"], 0:cfg["size"]].astype(np.float32)
    while True:
        at = rng.uniform(8, 40, (cfg["batch"], 2, 1, 1))
        wide = rng.uniform(20, 120, (cfg["batch"], 1, 1))
        bed = ((x - at[:, 0]) ** 2 + (y - at[:, 1]) ** 2 < wide).astype(np.float32)
        sea = rng.normal(0, 0.6, (cfg["batch"], 3, cfg["size"], cfg["size"])).astype(np.float32)
        sea[:, 1] += bed
        yield torch.from_numpy(sea), torch.from_numpy(bed)


def twice(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.ReLU(), nn.Conv2d(b, b, 3, padding=1), nn.ReLU())


class Outline(nn.Module):
    def __init__(self, channels):
        super().__init__()
        a, b = channels
        self.down, self.deep, self.up = twice(3, a), twice(a, b), twice(a + b, a)
        self.mask = nn.Conv2d(a, 1, 1)

    def forward(self, x):
        fine = self.down(x)
        coarse = self.deep(nn.functional.max_pool2d(fine, 2))
        coarse = nn.functional.interpolate(coarse, scale_factor=2)
        return self.mask(self.up(torch.cat([fine, coarse], 1))).squeeze(1)


def train(cfg):
    torch.manual_seed(cfg["seed"])
    net = Outline(cfg["channels"])
    optimizer = torch.optim.Adam(net.parameters(), lr=cfg["lr"])
    began, cpu = time.perf_counter(), time.process_time()
    for step, (sea, bed) in enumerate(coast(np.random.default_rng(cfg["seed"]), cfg), 1):
        loss = nn.functional.binary_cross_entropy_with_logits(net(sea), bed)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == cfg["steps"]:
            break
    took = time.perf_counter() - began
    print(f"loss {loss.item():.3f}; {1000 * took / step:.2f} ms a step, {time.process_time() - cpu:.1f} s of CPU, {took:.2f} s")


if __name__ == "__main__":
    rest = [a for a in sys.argv[1:] if a != "--as-it-is"]
    train({**CFG, "steps": int(rest[0])} if rest else CFG)
