"""Light plots: lamp levels of the next cue from the levels of the last ones, for a repertory theatre's rig."""
import argparse
import math
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class RowTrust(torch.optim.Optimizer):
    """Adam whose step is scaled, row by row, by |w| / |step| (as LAMB does it by layer)."""

    def __init__(self, params, lr=2e-3, betas=(0.9, 0.99), eps=1e-8):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["t"] = 0
                    state["m"] = torch.zeros_like(p)
                    state["v"] = torch.zeros_like(p)
                state["t"] += 1
                self.update(p, p.grad, state, group["lr"], b1, b2, group["eps"])

    def update(self, p, grad, state, lr, b1, b2, eps):
        fix = math.sqrt(1 - b2 ** state["t"]) / (1 - b1 ** state["t"])
        if p.dim() < 2:
            state["m"].mul_(b1).add_(grad, alpha=1 - b1)
            state["v"].mul_(b2).add_(grad ** 2, alpha=1 - b2)
            p.sub_((lr * fix * state["m"] / (state["v"].sqrt() + eps)).to(p.dtype))
            return
        m, v = state["m"], state["v"]
        m.mul_(b1).add_(grad, alpha=1 - b1)
        v.mul_(b2).addcmul_(grad, grad, value=1 - b2)
        move = m / v.sqrt().add_(eps)
        move.mul_(fix)
        trust = (p.flatten(1).norm(dim=1) / (move.flatten(1).norm(dim=1) + eps)).clamp_(0.01, 10.0)
        p.sub_(move.mul_(lr * trust[:, None]))


class CueNet(nn.Module):
    def __init__(self, lamps, hidden):
        super().__init__()
        self.inp = nn.Linear(lamps * 4, hidden)
        self.mid = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, lamps)

    def forward(self, x):
        h = F.silu(self.inp(x.flatten(1)))
        return torch.sigmoid(self.out(h + F.silu(self.mid(h))))


def plots(shows, lamps, seed):
    rng = np.random.default_rng(seed)
    looks = rng.random((24, lamps)) ** 2
    mix = rng.dirichlet(np.full(24, 0.3), (shows, 5)).cumsum(1)
    mix /= mix.sum(2, keepdims=True)
    levels = torch.from_numpy((mix @ looks).astype(np.float32))
    return TensorDataset(levels[:, :4], levels[:, 4])


def main(steps):
    torch.manual_seed(21)
    loader = DataLoader(plots(3840, 96, 21), batch_size=192, shuffle=True)
    net = CueNet(96, 192)
    opt = RowTrust(net.parameters())
    began, done = time.perf_counter(), 0
    while done < steps:
        for before, after in loader:
            loss = F.mse_loss(net(before), after)
            opt.zero_grad()
            loss.backward()
            opt.step()
            done += 1
            if done >= steps:
                break
        print("after %d: %.5f" % (done, loss.item()))
    print("%.2f s, cpu %.2f" % (time.perf_counter() - began, time.process_time()))


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=340)
    main(ap.parse_args().steps)
