# truth: optimizer_bound
# about: a hand-written Shampoo takes the inverse fourth roots of both preconditioners of every weight matrix, by eigenvalues in double precision, in every step; the optimizer costs many times what forward and backward do
# also: precision_unused
# cure: --roots-every 20
# whatif: optimizer=10
# needs: torch numpy
"""Vitality of yeast from flow-cytometry channels, a residual network trained with Shampoo."""
import argparse
import time

import torch
from torch import nn

CHANNELS, WIDTH, BATCH = 40, 192, 384


class Shampoo(torch.optim.Optimizer):
    def __init__(self, params, lr=0.1, momentum=0.9, epsilon=1e-4, roots_every=1):
        super().__init__(params, dict(lr=lr, momentum=momentum, epsilon=epsilon, roots_every=roots_every))

    @staticmethod
    def inverse_root(matrix, order):
        values, vectors = torch.linalg.eigh(matrix.double())
        return ((vectors * values.clamp_min(1e-12).pow(-1.0 / order)) @ vectors.t()).float()

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state, grad = self.state[p], p.grad
                if not state:
                    state["t"] = 0
                    state["velocity"] = torch.zeros_like(p)
                    for axis, size in enumerate(p.shape if p.dim() == 2 else ()):
                        state["stat", axis] = group["epsilon"] * torch.eye(size)
                if p.dim() == 2:
                    state["stat", 0].addmm_(grad, grad.t())
                    state["stat", 1].addmm_(grad.t(), grad)
                    if state["t"] % group["roots_every"] == 0:
                        state["left"] = self.inverse_root(state["stat", 0], 4)
                        state["right"] = self.inverse_root(state["stat", 1], 4)
                    grad = state["left"] @ grad @ state["right"]
                state["t"] += 1
                state["velocity"].mul_(group["momentum"]).add_(grad)
                p.sub_(state["velocity"], alpha=group["lr"])


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.inner = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return x + torch.relu(self.inner(self.norm(x)))


def cells(count, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(count, CHANNELS, generator=g)
    weight = torch.randn(CHANNELS, generator=g)
    y = torch.sin(x @ weight / 4) + 0.3 * x[:, 0] * x[:, 1] + 0.05 * torch.randn(count, generator=g)
    return x, y


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--roots-every", type=int, default=1, help="steps between new roots of the preconditioners")
    p.add_argument("--steps", type=int, default=150)
    args = p.parse_args()
    torch.manual_seed(12)
    x, y = cells(8000, 12)
    model = nn.Sequential(nn.Linear(CHANNELS, WIDTH), Residual(), Residual(), Residual(), nn.Linear(WIDTH, 1))
    optimizer = Shampoo(model.parameters(), lr=0.02, roots_every=args.roots_every)
    began = time.perf_counter()
    for step in range(args.steps):
        rows = torch.randint(len(x), (BATCH,))
        loss = nn.functional.mse_loss(model(x[rows]).squeeze(1), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 29:
            print(f"step {step + 1} loss {loss.item():.4f}")
    took = time.perf_counter() - began
    print(f"{args.steps} steps, {1000 * took / args.steps:.1f} ms a step")


if __name__ == "__main__":
    main()
