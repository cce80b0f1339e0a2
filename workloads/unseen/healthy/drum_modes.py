#!/usr/bin/env python3
# truth: none
# about: the vibration of a drum skin is fitted by L-BFGS, whose step calls the network several times; forward and backward passes over large matrices take nearly all of the time, nothing is to be gained
# needs: torch
"""A network that represents a drum skin's motion is fitted to measured displacements."""
import time

import torch
from torch import nn


def measured(count):
    g = torch.Generator().manual_seed(17)
    place = torch.rand(count, 3, generator=g) * 2 - 1  # x, y, time
    x, y, t = place.unbind(1)
    motion = (torch.sin(3.1 * x) * torch.cos(2.2 * y) * torch.cos(4.0 * t) + 0.4 * torch.sin(5.0 * x * y) * torch.cos(7.0 * t))
    return place, motion[:, None] + 0.01 * torch.randn(count, 1, generator=g)


def network(width):
    layers, before = [], 3
    for _ in range(3):
        layers += [nn.Linear(before, width), nn.Tanh()]
        before = width
    return nn.Sequential(*layers, nn.Linear(before, 1))


def main():
    torch.manual_seed(0)
    place, motion = measured(400_000)
    rows = torch.randperm(len(place))[:1024]
    place, motion = place[rows], motion[rows]
    skin = network(128)
    fit = torch.optim.LBFGS(skin.parameters(), lr=0.5, max_iter=10, history_size=5)
    calls = 0

    def closure():
        nonlocal calls
        calls += 1
        fit.zero_grad()
        loss = nn.functional.mse_loss(skin(place), motion)
        loss.backward()
        return loss

    begin, rounds = time.perf_counter(), 140
    for _ in range(rounds):
        loss = fit.step(closure)
    took = time.perf_counter() - begin
    print(f"loss {float(loss.detach()):.5f}, {rounds} steps, {calls} passes, {took:.2f} s, {1e3 * took / rounds:.1f} ms a step")


if __name__ == "__main__":
    main()
