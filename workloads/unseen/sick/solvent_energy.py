# truth: optimizer_bound
# about: the optimizer is an AdamW written by hand: one parameter at a time, every formula in double precision with its own temporaries, converted there and back; it takes longer than forward and backward together
# also: precision_unused allocation_churn
# cure: --optimizer torch
# needs: torch
"""Regresses the solvation energy of molecules from fingerprints with a deep residual network."""
import argparse
import time

import torch
from torch import nn


class CarefulAdamW(torch.optim.Optimizer):
    """AdamW after the paper; moments in double precision, to be safe."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

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
                    state["m"] = torch.zeros_like(p, dtype=torch.float64)
                    state["v"] = torch.zeros_like(p, dtype=torch.float64)
                state["t"] += 1
                g = p.grad.double()
                w = p.double()
                state["m"] = b1 * state["m"] + (1 - b1) * g
                state["v"] = b2 * state["v"] + (1 - b2) * g ** 2
                m_hat = state["m"] / (1 - b1 ** state["t"])
                v_hat = state["v"] / (1 - b2 ** state["t"])
                w = w - group["lr"] * group["weight_decay"] * w
                w = w - group["lr"] * m_hat / (torch.sqrt(v_hat) + group["eps"])
                p.copy_(w.float())


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def molecules(count, bits=512):
    gen = torch.Generator().manual_seed(41)
    prints = (torch.rand(count, bits, generator=gen) < 0.08).float()
    weight = torch.randn(bits, generator=gen)
    pairs = prints[:, : bits // 2] * prints[:, bits // 2:]
    energy = prints @ weight * 0.15 + pairs @ torch.randn(bits // 2, generator=gen)
    return prints, energy + 0.05 * torch.randn(count, generator=gen)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--optimizer", choices=["own", "torch"], default="own")
    ap.add_argument("--steps", type=int, default=132)
    a = ap.parse_args()
    torch.manual_seed(10)
    prints, energy = molecules(8000)
    width = 256
    model = nn.Sequential(nn.Linear(512, width), *[Block(width) for _ in range(20)],
                          nn.LayerNorm(width), nn.Linear(width, 1))
    make = CarefulAdamW if a.optimizer == "own" else torch.optim.AdamW
    optimizer = make(model.parameters(), lr=3e-4, weight_decay=0.01)
    begin, total = time.perf_counter(), 0.0
    for step in range(1, a.steps + 1):
        pick = torch.randint(0, len(prints), (48,))
        loss = nn.functional.smooth_l1_loss(model(prints[pick]).squeeze(1), energy[pick])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        total = total + loss.detach()
        if step % 66 == 0:
            print(f"step {step}: loss {float(total) / step:.4f}")
    took = time.perf_counter() - begin
    print(f"{a.steps} steps, {took:.2f} s, {1e3 * took / a.steps:.1f} ms a step")


if __name__ == "__main__":
    main()
