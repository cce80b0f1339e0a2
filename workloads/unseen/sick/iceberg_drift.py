#!/usr/bin/env python3
# truth: memory_leak
# about: the turned and smoothed fields of current are kept in a cache without a limit whose key holds the random angle, so no entry is ever used twice and about 1.6 MB stay behind in every step; cured, the cache holds 64 entries
# cure: --remember 64
# gain: none
# needs: torch
"""Where an iceberg will be in six hours, from the field of currents around it."""
import argparse
import functools
import math
import random
import resource
import time

import torch
from torch import nn
from torch.nn import functional as F

SIZE = 72


def ocean(count):
    """The liveliest of many fields."""
    torch.manual_seed(30)
    rough = torch.randn(700, 2, 9, 9)
    fields = F.interpolate(rough, size=(SIZE, SIZE), mode="bicubic", align_corners=False)
    return fields[fields.square().mean((1, 2, 3)).topk(count).indices]


class Charts:
    def __init__(self, fields, remember):
        self.fields = fields
        self.turned = functools.lru_cache(maxsize=remember)(self.turn)

    def turn(self, index, angle):
        """The field seen from a ship with this heading; currents turn with the chart."""
        c, s = math.cos(angle), math.sin(angle)
        where = F.affine_grid(torch.tensor([[[c, -s, 0.0], [s, c, 0.0]]]), (1, 2, SIZE, SIZE), align_corners=False)
        east, north = F.grid_sample(self.fields[index:index + 1], where, padding_mode="reflection", align_corners=False)[0]
        return torch.stack([c * east + s * north, c * north - s * east])

    def batch(self, rng, size):
        charts = [self.turned(rng.randrange(len(self.fields)), rng.uniform(0.0, 2 * math.pi)) for _ in range(size)]
        return torch.stack(charts)


def drift(charts):
    """Six hours of drift from the middle of the chart, by the current there."""
    middle = charts[:, :, SIZE // 2 - 8:SIZE // 2 + 8, SIZE // 2 - 8:SIZE // 2 + 8]
    return 6 * middle.mean((2, 3))


def block(inside, outside):
    return nn.Sequential(nn.Conv2d(inside, outside, 3, stride=2, padding=1), nn.GroupNorm(4, outside), nn.ReLU())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--remember", type=int, default=None)
    parser.add_argument("--steps", type=int, default=130)
    args = parser.parse_args()
    charts = Charts(ocean(150), args.remember)
    rng = random.Random(6)
    model = nn.Sequential(block(2, 32), block(32, 64), block(64, 128), nn.Flatten(), nn.Linear(128 * 81, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    begin, total = time.perf_counter(), 0.0
    for _ in range(args.steps):
        seen = charts.batch(rng, 40)
        loss = F.l1_loss(model(seen), drift(seen))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        total += loss.item()
    took = time.perf_counter() - begin
    print(f"loss {total / args.steps:.3f}, {args.steps} steps, {took:.2f} s, {1e3 * took / args.steps:.1f} ms a step, "
          f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB")


if __name__ == "__main__":
    main()
