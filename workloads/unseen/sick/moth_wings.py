# truth: optimizer_bound
# about: the home-made optimizer clips and normalises the gradient of each neuron in a Python loop over the rows of every weight, some ten small calls a row
# also: launch_bound
# cure: cured/moth_wings.py
# whatif: optimizer=100
# needs: torch numpy
"""Moth species from wing landmarks, trained with per-neuron adaptive clipping (own implementation)."""
import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.optim.optimizer import Optimizer


class NeuronClipSGD(Optimizer):
    """SGD with momentum; each output neuron's gradient is limited to a part of its weights' norm."""

    def __init__(self, params, lr=0.05, momentum=0.9, limit=0.05, floor=1e-3):
        super().__init__(params, dict(lr=lr, momentum=momentum, limit=limit, floor=floor))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "velocity" not in state:
                    state["velocity"] = torch.zeros_like(p)
                rows, grads, speed = p.view(len(p), -1), p.grad.view(len(p), -1), state["velocity"].view(len(p), -1)
                for i in range(len(rows)):
                    allowed = rows[i].norm().clamp(min=group["floor"]) * group["limit"]
                    size = grads[i].norm().clamp(min=1e-12)
                    scale = (allowed / size).clamp(max=1.0)
                    speed[i].mul_(group["momentum"]).add_(grads[i] * scale)
                    rows[i].sub_(group["lr"] * speed[i])


def wings(n, species, landmarks, seed):
    rng = np.random.default_rng(seed)
    mean = rng.normal(0, 1, (species, landmarks, 2))
    kind = rng.integers(0, species, n)
    turn = rng.normal(0, 0.2, n)
    rot = np.stack([np.stack([np.cos(turn), -np.sin(turn)], 1), np.stack([np.sin(turn), np.cos(turn)], 1)], 1)
    shape = mean[kind] @ rot + rng.normal(0, 0.4, (n, landmarks, 2))
    return torch.from_numpy(shape.reshape(n, -1).astype(np.float32)), torch.from_numpy(kind)


class WingNet(nn.Module):
    def __init__(self, landmarks, species, width=256):
        super().__init__()
        self.first = nn.Linear(2 * landmarks, width)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(width, width), nn.Tanh()) for _ in range(2))
        self.last = nn.Linear(width, species)

    def forward(self, x):
        x = torch.tanh(self.first(x))
        for block in self.blocks:
            x = x + block(x)
        return self.last(x)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=140)
    steps = ap.parse_args().steps
    torch.manual_seed(12)
    torch.set_num_threads(1)
    x, y = wings(12000, 30, 40, 12)
    net = WingNet(40, 30)
    opt = NeuronClipSGD(net.parameters())
    gen = torch.Generator().manual_seed(12)
    began, cpu = time.perf_counter(), time.process_time()
    for step in range(1, steps + 1):
        idx = torch.randint(len(x), (256,), generator=gen)
        loss = nn.functional.cross_entropy(net(x[idx]), y[idx])
        net.zero_grad()
        loss.backward()
        opt.step()
        if step % 35 == 0:
            print("%4d  %.4f" % (step, loss.item()))
    print("%.1f ms a step, %.1f ms of CPU" % (1e3 * (time.perf_counter() - began) / steps, 1e3 * (time.process_time() - cpu) / steps))


if __name__ == "__main__":
    main()
