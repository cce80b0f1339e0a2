# truth: optimizer_bound
# about: the optimizer works out the inverse roots of its factor matrices (an eigendecomposition of each) anew in every step, though they hardly change from one step to the next
# cure: --refresh 20
# whatif: optimizer=4.9
# needs: torch
"""How fast a lichen spreads on a rock face: a regression with a Kronecker-factored, Shampoo-like optimizer of our own."""
import argparse
import time

import torch
from torch import nn


class Kronecker(torch.optim.Optimizer):
    """W -= lr * L^(-1/4) G R^(-1/4), with L and R running sums of G G' and G' G; plain steps for vectors."""

    def __init__(self, params, lr=0.02, refresh=1, keep=0.95):
        super().__init__(params, dict(lr=lr, refresh=refresh, keep=keep))

    @staticmethod
    def inverse_root(matrix):
        values, vectors = torch.linalg.eigh(matrix + 1e-4 * torch.eye(len(matrix)))
        return (vectors * values.clamp(min=1e-6).pow(-0.25)) @ vectors.T

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                grad = weight.grad
                if grad.dim() != 2:
                    weight.add_(grad, alpha=-group["lr"])
                    continue
                state = self.state[weight]
                if not state:
                    state["count"] = 0
                    state["left"] = torch.zeros(grad.shape[0], grad.shape[0])
                    state["right"] = torch.zeros(grad.shape[1], grad.shape[1])
                state["left"].mul_(group["keep"]).addmm_(grad, grad.T)
                state["right"].mul_(group["keep"]).addmm_(grad.T, grad)
                if state["count"] % group["refresh"] == 0:
                    state["left_root"] = self.inverse_root(state["left"])
                    state["right_root"] = self.inverse_root(state["right"])
                state["count"] += 1
                weight.add_(state["left_root"] @ grad @ state["right_root"], alpha=-group["lr"])


def rock_faces(count, dice):
    site = torch.randn(count, 40, generator=dice)
    speed = torch.sin(site[:, :8].sum(1)) + 0.3 * site[:, 8:16].pow(2).mean(1)
    return site, speed + 0.05 * torch.randn(count, generator=dice)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=360)
    parser.add_argument("--refresh", type=int, default=1)
    options = parser.parse_args()
    torch.manual_seed(44)
    dice = torch.Generator().manual_seed(45)
    sites, speeds = rock_faces(20000, dice)
    net = nn.Sequential(nn.Linear(40, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 1))
    optimizer = Kronecker(net.parameters(), refresh=options.refresh)
    began, cpu = time.perf_counter(), time.process_time()
    for _ in range(options.steps):
        pick = torch.randint(len(sites), (512,), generator=dice)
        loss = nn.functional.mse_loss(net(sites[pick]).squeeze(1), speeds[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    took = time.perf_counter() - began
    print(f"loss {loss.item():.4f}; {1000 * took / options.steps:.2f} ms a step, {time.process_time() - cpu:.1f} s of CPU, {took:.2f} s")


if __name__ == "__main__":
    main()
