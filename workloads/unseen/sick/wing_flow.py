# truth: precision_unused
# about: the tables of the flow solver come from numpy as float64, and the network was made double to fit them; its targets are good to three digits, and float32 halves the work
# cure: --single
# needs: torch numpy
"""Surrogate of a flow solver: pressure at 200 places of a wing from its shape and the stream; residual layers."""
import argparse
import time

import numpy as np
import torch
from torch import nn

SHAPE, PLACES, WIDTH = 40, 200, 640


def solver_runs(count):
    rng = np.random.default_rng(31)
    shape = rng.normal(size=(count, SHAPE))
    basis = rng.normal(size=(SHAPE, 60)) / SHAPE ** 0.5
    modes = rng.normal(size=(60, PLACES)) / 60 ** 0.5
    pressure = np.tanh(shape @ basis * 1.5) @ modes
    return shape, np.round(pressure, 3)


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(WIDTH, WIDTH)
        self.b = nn.Linear(WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x):
        return x + self.b(torch.relu(self.a(self.norm(x))))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--single", action="store_true")
    ap.add_argument("--epochs", type=int, default=EPOCHS)
    args = ap.parse_args()
    torch.manual_seed(7)
    shape, pressure = (torch.from_numpy(a) for a in solver_runs(256 * 20))
    net = nn.Sequential(nn.Linear(SHAPE, WIDTH), Residual(), Residual(), nn.Linear(WIDTH, PLACES)).double()
    if args.single:
        shape, pressure, net = shape.float(), pressure.float(), net.float()
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    plan = torch.optim.lr_scheduler.CosineAnnealingLR(opt, args.epochs)
    steps = 0
    begin = time.perf_counter()
    for epoch in range(args.epochs):
        for pick in torch.randperm(len(shape)).split(256):
            loss = nn.functional.mse_loss(net(shape[pick]), pressure[pick])
            opt.zero_grad()
            loss.backward()
            opt.step()
            steps += 1
        plan.step()
        print(f"epoch {epoch} loss {loss.item():.5f}")
    spent = time.perf_counter() - begin
    print(f"{steps} steps, {spent:.2f} s, {1000 * spent / steps:.2f} ms a step")


EPOCHS = 10
if __name__ == "__main__":
    main()
