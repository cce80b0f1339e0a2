# truth: recompilation
# about: every payment of a bond is a small module with its day among its constants, so torch.jit.script compiles a new price module for every batch of bonds, because each issue has other payment days; written with the days as an argument it would be compiled once
# cure: cured/coupon_curves.py
# env: OPENBLAS_NUM_THREADS=1
# needs: torch
"""Fits a yield curve network to quoted bond prices.

Every batch holds the bonds of one issue: they share the days of payment."""
import argparse
from typing import Final

import torch
from torch import nn

torch.set_num_threads(1)


class Curve(nn.Module):
    def __init__(self, width=160):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(9, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 4))

    def forward(self, market):
        return self.net(market)


class Payment(nn.Module):
    years: Final[float]
    back: Final[float]

    def __init__(self, years: float, back: float):
        super().__init__()
        self.years = years
        self.back = back

    def forward(self, curve, rate):
        decay = nn.functional.softplus(curve[:, 3]) + 0.2
        z = self.years * decay
        load = (1.0 - torch.exp(-z)) / z
        spot = curve[:, 0] + curve[:, 1] * load + curve[:, 2] * (load - torch.exp(-z))
        return (rate * 0.5 + self.back) * torch.exp(-spot * self.years)


class Bond(nn.Module):
    """price under a Nelson-Siegel curve"""

    def __init__(self, schedule):
        super().__init__()
        self.payments = nn.ModuleList(Payment(d / 365.25, float(d == schedule[-1])) for d in schedule)

    def forward(self, curve, rate):
        price = torch.zeros_like(rate)
        for payment in self.payments:
            price = price + payment(curve, rate)
        return price


def issues(steps, size, seed=11):
    g = torch.Generator().manual_seed(seed)
    for step in range(steps):
        schedule = [float(37 + step * 5 % 170 + 182 * k) for k in range(10 + step % 5)]
        market = torch.randn(size, 9, generator=g)
        rate = torch.rand(size, generator=g) * 0.06
        quoted = 1.0 + 0.05 * torch.tanh(market[:, 0]) - 0.01 * len(schedule) * torch.sigmoid(market[:, 1])
        yield schedule, market, rate, quoted


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=170)
    a = p.parse_args()
    torch.manual_seed(5)
    curve = Curve()
    optimizer = torch.optim.Adam(curve.parameters(), lr=1e-3)
    seen = 0.0
    for step, (schedule, market, rate, quoted) in enumerate(issues(a.steps, 512)):
        bond = torch.jit.script(Bond(schedule))
        optimizer.zero_grad()
        loss = nn.functional.smooth_l1_loss(bond(curve(market), rate), quoted)
        loss.backward()
        optimizer.step()
        seen += loss.item()
        if step % 20 == 19:
            print(f"{step + 1:4d} bonds off by {seen / 20:.5f}")
            seen = 0.0


if __name__ == "__main__":
    main()
