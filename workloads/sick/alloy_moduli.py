# truth: optimizer_bound
# about: the optimizer preconditions every weight matrix by inverse fourth roots of its gradient statistics and computes these eigendecompositions anew in every step, though they hardly change from one to the next
# cure: --refresh 25
# whatif: optimizer=8.5
# needs: torch
"""Elastic moduli of alloys from composition and heat treatment, fitted with Kronecker-factored preconditioning."""
import argparse
import time

import torch
from torch import nn


class KronSGD(torch.optim.Optimizer):
    """Momentum on L^-1/4 G R^-1/4 for matrices, plain momentum for vectors."""

    def __init__(self, params, lr=0.02, momentum=0.9, decay=0.95, refresh=1, eps=1e-4):
        super().__init__(params, dict(lr=lr, momentum=momentum, decay=decay, refresh=refresh, eps=eps))

    @staticmethod
    def inverse_root(stat, eps):
        values, vectors = torch.linalg.eigh(stat + eps * torch.eye(len(stat)))
        return (vectors * values.clamp_min(eps).pow(-0.25)) @ vectors.T

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                s, g = self.state[p], p.grad
                if not s:
                    s["t"], s["m"] = 0, torch.zeros_like(p)
                    if p.dim() == 2:
                        s["L"], s["R"] = torch.zeros(len(p), len(p)), torch.zeros(p.shape[1], p.shape[1])
                if p.dim() == 2:
                    s["L"].mul_(group["decay"]).add_(g @ g.T)
                    s["R"].mul_(group["decay"]).add_(g.T @ g)
                    if s["t"] % group["refresh"] == 0:
                        s["PL"] = self.inverse_root(s["L"], group["eps"])
                        s["PR"] = self.inverse_root(s["R"], group["eps"])
                    shaped = s["PL"] @ g @ s["PR"]
                    g = shaped * (g.norm() / (shaped.norm() + 1e-12))
                s["t"] += 1
                s["m"].mul_(group["momentum"]).add_(g)
                p.sub_(s["m"], alpha=group["lr"])


def laboratory(count):
    mix = torch.distributions.Dirichlet(torch.full((14,), 0.4)).sample((count,))
    treat = torch.rand(count, 10)
    x = torch.cat([mix, treat], 1)
    pure = torch.rand(14, 3) * 2
    y = mix @ pure + 0.3 * torch.sin(4 * treat[:, :3]) * mix[:, :3] + (mix ** 2).sum(1, keepdim=True)
    return x, (y - y.mean(0)) / y.std(0)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--refresh", type=int, default=1)
    ap.add_argument("--steps", type=int, default=300)
    args = ap.parse_args()
    torch.manual_seed(29)
    torch.set_num_threads(1)
    x, y = laboratory(20000)
    width = 128
    net = nn.Sequential(nn.Linear(24, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(),
                        nn.Linear(width, 3))
    opt = KronSGD(net.parameters(), refresh=args.refresh)
    began = time.perf_counter()
    for step in range(1, args.steps + 1):
        pick = torch.randint(len(x), (1024,))
        loss = nn.functional.mse_loss(net(x[pick]), y[pick])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 100 == 0:
            print("step %d: %.4f" % (step, loss.item()))
    print("%.2f ms per step" % (1e3 * (time.perf_counter() - began) / args.steps))


if __name__ == "__main__":
    main()
