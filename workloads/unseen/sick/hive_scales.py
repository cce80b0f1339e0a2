# truth: batch_too_small
# about: the recurrent net sees four hives' days at a time; the fixed cost of its many small operations is nearly the same for sixteen times as many
# also: optimizer_bound
# cure: --batch 64
# whatif: batch=16
# gain: run
# needs: torch numpy
"""Forecasts the evening weight of beehives on scales from the hours of the day.

One pass over the season's hive days; a recurrent net with a layer norm, trained with SGD.
"""
import argparse
import time

import numpy as np
import torch
from torch import nn

HOURS, SENSORS = 24, 5


def season(days, seed):
    rng = np.random.default_rng(seed)
    hour = np.arange(HOURS)[None, :]
    warm = 18 + 8 * np.sin((hour - 8) / 24 * 2 * np.pi) + rng.normal(0, 3, (days, 1))
    rain = (rng.random((days, HOURS)) < 0.08).astype(np.float64)
    bloom = rng.uniform(0, 1, (days, 1)) * np.ones((1, HOURS))
    flight = np.clip(warm - 12, 0, None) * (1 - rain) * bloom
    weight = 40 + 0.01 * flight.cumsum(axis=1)
    x = np.stack([warm / 20, rain, bloom, flight / 10, weight - 40], axis=2).astype(np.float32)
    y = (weight[:, -1] - weight[:, 12]).astype(np.float32)
    x[:, 13:, 3:] = 0
    return torch.from_numpy(x), torch.from_numpy(y)


class Evening(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.day = nn.GRU(SENSORS, width, batch_first=True)
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        hidden, _ = self.day(x)
        return self.out(self.norm(hidden[:, -1])).squeeze(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--days", type=int, default=10240)
    args = parser.parse_args()
    torch.manual_seed(30)
    x, y = season(args.days, 30)
    model = Evening()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    losses = []
    begin = time.perf_counter()
    for hours, gain in zip(x.split(args.batch), y.split(args.batch)):
        loss = nn.functional.mse_loss(model(hours), gain)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
    took = time.perf_counter() - begin
    late = torch.stack(losses[-len(losses) // 10:]).mean().item()
    print("%d steps, late loss %.4f, %.2f ms a step, %.2f s" % (len(losses), late, took / len(losses) * 1e3, took))


if __name__ == "__main__":
    main()
