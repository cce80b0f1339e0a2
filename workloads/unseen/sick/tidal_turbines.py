# truth: optimizer_bound
# about: the preconditioned optimizer takes the inverse roots of all its matrices (an eigendecomposition each) anew in every step, although they hardly change from one step to the next
# cure: --roots-every 20
# whatif: optimizer=4
# env: OMP_NUM_THREADS=1
# needs: torch numpy
"""Power of a tidal turbine from the flow at the rotor, trained with a Shampoo-like optimizer."""
import argparse

import numpy as np
import torch
from torch import nn


class Kronecker(torch.optim.Optimizer):
    """Preconditions the gradient of a matrix from both sides, with grafting to its own norm."""

    def __init__(self, params, lr=1e-2, momentum=0.9, decay=0.95, ridge=1e-4, roots_every=1):
        super().__init__(params, dict(lr=lr, momentum=momentum, decay=decay, ridge=ridge, roots_every=roots_every))

    @staticmethod
    def inverse_root(matrix, ridge):
        values, vectors = torch.linalg.eigh(matrix)
        values = values.clamp(min=0) + ridge * values[-1].clamp(min=1e-12)
        return (vectors * values.pow(-0.25)) @ vectors.T

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                grad, state = p.grad, self.state[p]
                if not state:
                    state["count"] = 0
                    state["velocity"] = torch.zeros_like(p)
                    if p.dim() == 2:
                        state["sides"] = [torch.zeros(n, n) for n in p.shape]
                        state["roots"] = [torch.eye(n) for n in p.shape]
                if p.dim() == 2:
                    rows, columns = state["sides"]
                    rows.lerp_(grad @ grad.T, 1 - group["decay"])
                    columns.lerp_(grad.T @ grad, 1 - group["decay"])
                    if state["count"] % group["roots_every"] == 0:
                        state["roots"] = [self.inverse_root(s, group["ridge"]) for s in state["sides"]]
                    left, right = state["roots"]
                    shaped = left @ grad @ right
                    grad = shaped * (grad.norm() / (shaped.norm() + 1e-12))
                state["count"] += 1
                state["velocity"].mul_(group["momentum"]).add_(grad)
                p.add_(state["velocity"], alpha=-group["lr"])


def flows(count, rng):
    """Velocity profiles over the rotor disc and what the turbine made of them."""
    speed = rng.weibull(2.2, (count, 1)) * 2
    shear = rng.uniform(0.05, 0.3, (count, 1))
    height = np.linspace(0.3, 1.7, 32)
    profile = speed * height ** shear + rng.normal(0, 0.15, (count, 32))
    power = np.clip((profile ** 3).mean(1) / 20, 0, 1.2)
    return torch.from_numpy(profile.astype(np.float32)), torch.from_numpy(power.astype(np.float32))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--roots-every", type=int, default=1, metavar="STEPS")
    parser.add_argument("--steps", type=int, default=360)
    parser.add_argument("--batch", type=int, default=512)
    args = parser.parse_args()
    torch.manual_seed(19)
    profile, power = flows(20_000, np.random.default_rng(19))
    width = 192
    net = nn.Sequential(nn.Linear(32, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width),
                        nn.SiLU(), nn.Linear(width, 1))
    optimizer = Kronecker(net.parameters(), lr=5e-3, roots_every=args.roots_every)
    for step in range(args.steps):
        pick = torch.randint(len(power), (args.batch,))
        error = net(profile[pick]).squeeze(1) - power[pick]
        loss = error.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % 90 == 0:
            print(f"{step + 1:4d}  rmse {loss.sqrt().item():.4f}")


if __name__ == "__main__":
    main()
