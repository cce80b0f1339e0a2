#!/usr/bin/env python3
# truth: optimizer_bound
# about: the second-order optimizer takes the inverse fourth roots of its preconditioners anew (an eigen-decomposition of two matrices for each layer) in every step, though they hardly change between steps; cured, it does so every 25 steps
# cure: --roots-every 25
# whatif: optimizer=4.5
# needs: torch
"""Odour notes (citrus, resin, musk ...) from chromatograms of perfumes, learnt with Shampoo."""
import argparse
import time

import torch
from torch import nn


class Shampoo(torch.optim.Optimizer):
    """Gupta, Koren, Singer 2018, for matrices; vectors get plain momentum."""

    def __init__(self, params, lr, momentum=0.9, decay=0.95, ridge=1e-3, roots_every=1):
        super().__init__(params, dict(lr=lr, momentum=momentum, decay=decay, ridge=ridge, roots_every=roots_every))

    @staticmethod
    def root(matrix, ridge):
        values, vectors = torch.linalg.eigh(matrix)
        values = (values.clamp(min=0) + ridge * values[-1].clamp(min=1e-12)).pow(-0.25)
        return (vectors * values) @ vectors.T

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state, grad = self.state[p], p.grad
                if not state:
                    state["count"] = 0
                    state["momentum"] = torch.zeros_like(p)
                    if p.dim() == 2:
                        state["left"], state["right"] = (torch.eye(n) * 1e-6 for n in p.shape)
                if p.dim() == 2:
                    state["left"].lerp_(grad @ grad.T, 1 - group["decay"])
                    state["right"].lerp_(grad.T @ grad, 1 - group["decay"])
                    if state["count"] % group["roots_every"] == 0:
                        state["left_root"] = self.root(state["left"], group["ridge"])
                        state["right_root"] = self.root(state["right"], group["ridge"])
                    scaled = state["left_root"] @ grad @ state["right_root"]
                    grad = scaled * (grad.norm() / scaled.norm().clamp(min=1e-12))
                state["count"] += 1
                state["momentum"].mul_(group["momentum"]).add_(grad)
                p.add_(state["momentum"], alpha=-group["lr"])


class Nose:
    """The task: data, network and how it is trained."""

    def __init__(self, roots_every):
        torch.manual_seed(20)
        peaks = torch.rand(60, 320)
        recipe = (torch.rand(6000, 60) > 0.85).float()
        self.chromatogram = recipe @ peaks / 6 + 0.05 * torch.randn(6000, 320)
        self.notes = (recipe @ torch.randn(60, 24) > 0.8).float()
        self.net = nn.Sequential(nn.Linear(320, 320), nn.Tanh(), nn.Linear(320, 320), nn.Tanh(), nn.Linear(320, 24))
        self.optimizer = Shampoo(self.net.parameters(), lr=0.05, roots_every=roots_every)
        self.spent = 0.0

    def epoch(self, size):
        total, batches = 0.0, 0
        for rows in torch.randperm(len(self.notes)).split(size):
            loss = nn.functional.binary_cross_entropy_with_logits(self.net(self.chromatogram[rows]), self.notes[rows])
            self.net.zero_grad()
            loss.backward()
            begin = time.perf_counter()
            self.optimizer.step()
            self.spent += time.perf_counter() - begin
            total, batches = total + float(loss.detach()), batches + 1
        return total / batches, batches


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--roots-every", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=16)
    args = parser.parse_args()
    nose = Nose(args.roots_every)
    steps, begin = 0, time.perf_counter()
    for epoch in range(args.epochs):
        loss, batches = nose.epoch(600)
        steps += batches
    took = time.perf_counter() - begin
    print(f"loss {loss:.3f}, {steps} steps, {took:.2f} s, {1e3 * took / steps:.1f} ms a step, "
          f"{1e3 * nose.spent / steps:.2f} of it in the optimizer")


if __name__ == "__main__":
    main()
