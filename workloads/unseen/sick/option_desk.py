# truth: optimizer_bound
# about: the desk's own optimizer walks through the table of underlyings row by row in Python, to give each row its own trust ratio; the same can be done for the whole table in a few operations
# whatif: optimizer=59
# cure: cured/option_desk.py
# env: OPENBLAS_NUM_THREADS=1
# needs: torch
"""Implied volatility from strike, term and underlying, with an embedding of each underlying."""
import argparse
import math

import torch
from torch import nn

torch.set_num_threads(1)
UNDERLYINGS, WIDTH = 480, 48


class RowLars(torch.optim.Optimizer):
    """momentum; every row of a matrix has a trust ratio of its own"""

    def __init__(self, params, lr=0.02, momentum=0.9, trust=0.02):
        super().__init__(params, dict(lr=lr, momentum=momentum, trust=trust))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["speed"] = torch.zeros_like(p)
                self.move(p, p.grad, state["speed"], group)

    def move(self, p, grad, speed, group):
        if p.dim() < 2:
            speed.mul_(group["momentum"]).add_(grad)
            p.sub_(speed, alpha=group["lr"])
            return
        for row in range(p.shape[0]):
            w, g, v = p[row], grad[row], speed[row]
            ratio = torch.clamp(group["trust"] * (w.norm() + 1e-3) / (g.norm() + 1e-8), max=10.0)
            v.mul_(group["momentum"]).add_(g * ratio)
            w.sub_(v, alpha=group["lr"])


class Smile(nn.Module):
    def __init__(self):
        super().__init__()
        self.name = nn.Embedding(UNDERLYINGS, WIDTH)
        self.quote = nn.Linear(3, WIDTH)
        self.mix = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.vol = nn.Linear(WIDTH, 1)

    def forward(self, name, quote):
        h = self.name(name) + self.quote(quote)
        for layer in self.mix:
            h = h + torch.tanh(layer(h))
        return nn.functional.softplus(self.vol(h)).squeeze(1)


def day(g, size):
    name = torch.randint(0, UNDERLYINGS, (size,), generator=g)
    quote = torch.randn(size, 3, generator=g)
    vol = 0.2 + 0.1 * torch.sin(name / 40 * math.pi) * quote[:, 0] + 0.05 * quote[:, 1] ** 2
    return name, quote, vol.clamp(min=0.02)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=260)
    steps = parser.parse_args().steps
    torch.manual_seed(21)
    g = torch.Generator().manual_seed(22)
    days = [day(g, 1536) for _ in range(20)]
    smile = Smile()
    optimizer = RowLars(smile.parameters())
    for i in range(steps):
        name, quote, vol = days[i % len(days)]
        optimizer.zero_grad()
        error = (smile(name, quote) - vol).abs().mean()
        error.backward()
        optimizer.step()
        if i % 65 == 64:
            print(f"day {i + 1}: {100 * error.item():.2f} vol points")
