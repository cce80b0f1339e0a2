# truth: optimizer_bound
# about: every shop has a weight matrix and a bias of its own (1400 small parameters), and a home-made AdamW updates them one by one with a dozen tiny operations each
# cure: --library
# needs: torch
"""Demand forecast with one small head per shop; Adam with decoupled weight decay after Loshchilov & Hutter 2019."""
import argparse
import math

import torch
from torch import nn

SHOPS, INPUTS, OUTPUTS = 700, 24, 8


class DecoupledAdam(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if len(state) == 0:
                    state["step"] = 0
                    state["m"] = torch.zeros_like(p)
                    state["v"] = torch.zeros_like(p)
                state["step"] += 1
                t = state["step"]
                p -= group["lr"] * group["weight_decay"] * p
                state["m"] = beta1 * state["m"] + (1 - beta1) * p.grad
                state["v"] = beta2 * state["v"] + (1 - beta2) * p.grad * p.grad
                m = state["m"] / (1 - math.pow(beta1, t))
                v = state["v"] / (1 - math.pow(beta2, t))
                p -= group["lr"] * m / (v.sqrt() + group["eps"])


class ShopHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, INPUTS), nn.ReLU())
        self.weights = nn.ParameterList([nn.Parameter(torch.randn(INPUTS, OUTPUTS) * 0.1) for _ in range(SHOPS)])
        self.biases = nn.ParameterList([nn.Parameter(torch.zeros(1, OUTPUTS)) for _ in range(SHOPS)])

    def forward(self, x):  # shops x days x features
        return torch.bmm(self.shared(x), torch.stack(list(self.weights))) + torch.stack(list(self.biases))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", action="store_true")
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()
    torch.manual_seed(3)
    calendar = torch.randn(SHOPS, 400, 16)
    sales = torch.randn(SHOPS, 400, OUTPUTS)
    model = ShopHeads()
    if args.library:
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-4, foreach=True)
    else:
        optimizer = DecoupledAdam(model.parameters(), lr=1e-3, weight_decay=1e-4)
    for step in range(args.steps):
        day = (step * 7) % 390
        x, y = calendar[:, day : day + 10], sales[:, day : day + 10]
        loss = (model(x) - y).pow(2).mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 25 == 0:
            print(f"step {step} mse {loss.item():.4f}")


if __name__ == "__main__":
    main()
