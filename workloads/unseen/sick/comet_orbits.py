# truth: precision_unused
# about: the observations come from numpy in double precision and the model was made double to match them; single precision does for this noise and computes twice as fast
# cure: --dtype float32
# needs: torch numpy
"""Predicts a comet's place a year on from a short arc of noisy observations.

Residual multilayer perceptron on the flattened arc; the orbits are drawn and propagated by numpy at the start. All of the
data is in memory; batches are slices of a permutation.
"""
import argparse
import time

import numpy as np
import torch
from torch import nn

ARC = 20


def kepler(mean, ecc):
    e = mean.copy()
    for _ in range(12):
        e = e - (e - ecc * np.sin(e) - mean) / (1 - ecc * np.cos(e))
    return e


def place(axis, ecc, turn, mean):
    e = kepler(mean, ecc)
    x, y = axis * (np.cos(e) - ecc), axis * np.sqrt(1 - ecc ** 2) * np.sin(e)
    return np.stack([x * np.cos(turn) - y * np.sin(turn), x * np.sin(turn) + y * np.cos(turn)], axis=-1)


def observe(count, seed):
    rng = np.random.default_rng(seed)
    axis = rng.uniform(1.5, 4.0, (count, 1))
    ecc = rng.uniform(0.1, 0.7, (count, 1))
    turn = rng.uniform(0, 2 * np.pi, (count, 1))
    rate = 2 * np.pi / axis ** 1.5
    mean = rng.uniform(0, 2 * np.pi, (count, 1)) + rate * np.linspace(0, 0.3, ARC)
    arc = place(axis, ecc, turn, mean)
    arc += rng.normal(0, 1e-3, arc.shape)
    later = place(axis, ecc, turn, mean[:, -1:] + rate)[:, 0]
    return arc.reshape(count, -1), later


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a = nn.Linear(width, width)
        self.b = nn.Linear(width, width)

    def forward(self, x):
        return x + self.b(torch.tanh(self.a(x)))


def train(model, arcs, later, steps, size):
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    history, order = [], torch.randperm(len(arcs))
    for step in range(steps):
        at = step * size % (len(arcs) - size + 1)
        pick = order[at:at + size]
        loss = nn.functional.huber_loss(model(arcs[pick]), later[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 20 == 0:
            history.append(loss.item())
    return history


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dtype", choices=("float64", "float32"), default="float64")
    parser.add_argument("--steps", type=int, default=240)
    args = parser.parse_args()
    torch.manual_seed(14)
    arcs, later = observe(16384, 14)
    dtype = getattr(torch, args.dtype)
    arcs, later = torch.from_numpy(arcs).to(dtype), torch.from_numpy(later).to(dtype)
    model = nn.Sequential(nn.Linear(2 * ARC, 384), Residual(384), Residual(384), nn.Linear(384, 2)).to(dtype)
    begin = time.perf_counter()
    history = train(model, arcs, later, args.steps, 512)
    took = time.perf_counter() - begin
    print("loss %.4f -> %.4f, %.2f ms a step" % (history[0], history[-1], took / args.steps * 1e3))


if __name__ == "__main__":
    main()
