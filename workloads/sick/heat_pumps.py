#!/usr/bin/env python3
# truth: batch_too_small
# about: the network sees four days at a time, so a step is almost nothing but the fixed cost of calling some hundred operators
# also: optimizer_bound
# cure: --batch 64
# whatif: batch=16
# gain: run
# needs: torch numpy
"""Predicts tomorrow's power draw of heat pumps from the curves of the day before."""
import argparse
import time

import numpy as np
import torch
from torch import nn

CHANNELS, QUARTERS = 5, 48


def fleet(days):
    """Telemetry of a made-up fleet: outdoor, flow, return, compressor, tariff."""
    rng = np.random.default_rng(31)
    clock = np.linspace(0, 2 * np.pi, QUARTERS, dtype=np.float32)
    phase = rng.uniform(0, 2 * np.pi, (days, CHANNELS, 1)).astype(np.float32)
    swing = rng.gamma(2.0, 1.0, (days, CHANNELS, 1)).astype(np.float32)
    curves = swing * np.sin(clock + phase) + rng.normal(0, 0.2, (days, CHANNELS, QUARTERS)).astype(np.float32)
    house = rng.integers(0, 40, days)
    draw = swing[:, :, 0].mean(1) + 0.02 * house + rng.normal(0, 0.05, days)
    return torch.from_numpy(curves), torch.from_numpy(house), torch.from_numpy(draw.astype(np.float32))


class Draw(nn.Module):
    def __init__(self):
        super().__init__()
        self.house = nn.Embedding(40, 8)
        self.a = nn.Conv1d(CHANNELS, 12, 5, stride=2, padding=2)
        self.b = nn.Conv1d(12, 16, 3, stride=2, padding=1)
        self.norm = nn.GroupNorm(4, 16)
        self.c = nn.Linear(16 * 12 + 8, 32)
        self.d = nn.Linear(32, 1)

    def forward(self, curves, house):
        x = torch.relu(self.a(curves))
        x = torch.relu(self.norm(self.b(x)))
        x = torch.cat([x.flatten(1), self.house(house)], dim=1)
        return self.d(torch.tanh(self.c(x))).squeeze(1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch", type=int, default=4)
    ap.add_argument("--epochs", type=int, default=6)
    args = ap.parse_args()
    torch.manual_seed(8)
    curves, house, draw = fleet(4096)
    model = Draw()
    opt = torch.optim.SGD(model.parameters(), lr=0.002 * args.batch ** 0.5, momentum=0.9)
    steps, begin = 0, time.perf_counter()
    for epoch in range(args.epochs):
        order = torch.randperm(len(draw))
        total = torch.zeros(())
        for part in order.split(args.batch):
            opt.zero_grad()
            loss = nn.functional.mse_loss(model(curves[part], house[part]), draw[part])
            loss.backward()
            opt.step()
            total += loss.detach() * len(part)
            steps += 1
        print(f"epoch {epoch}: mse {float(total) / len(draw):.4f}", flush=True)
    took = time.perf_counter() - begin
    print(f"{steps} steps, {1e3 * took / steps:.2f} ms each, {took:.2f} s")


if __name__ == "__main__":
    main()
