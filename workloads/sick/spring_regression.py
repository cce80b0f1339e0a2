# truth: batch_too_small
# about: a small network learns a damped spring two samples at a time, so a step is nothing but the fixed costs of forty tiny operations
# also: optimizer_bound
# cure: --batch 128
# gain: run
# needs: torch
import argparse

import torch
import torch.nn as nn


class SpringNet(nn.Module):
    """(time, mass, stiffness, damping) -> position and speed"""

    def __init__(self, width=48):
        super().__init__()
        self.inp = nn.Linear(4, width)
        self.hidden = nn.ModuleList([nn.Linear(width, width) for _ in range(3)])
        self.out = nn.Linear(width, 2)

    def forward(self, x):
        h = torch.sin(self.inp(x))
        for layer in self.hidden:
            h = h + torch.tanh(layer(h))
        return self.out(h)


def simulate(n, generator):
    x = torch.rand(n, 4, generator=generator)
    t, m, k, c = x[:, 0] * 5, x[:, 1] + 0.5, x[:, 2] * 4 + 1, x[:, 3] * 0.5
    omega, decay = torch.sqrt(k / m), c / (2 * m)
    pos = torch.exp(-decay * t) * torch.cos(omega * t)
    vel = -torch.exp(-decay * t) * (decay * torch.cos(omega * t) + omega * torch.sin(omega * t))
    return x, torch.stack([pos, vel], 1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch", type=int, default=2)
    ap.add_argument("--samples", type=int, default=40960)
    ap.add_argument("--lr", type=float, default=1e-2)
    args = ap.parse_args()

    g = torch.Generator().manual_seed(17)
    x, y = simulate(args.samples, g)
    torch.manual_seed(17)
    net = SpringNet()
    sgd = torch.optim.SGD(net.parameters(), lr=args.lr)
    running = None
    done = 0
    for xb, yb in zip(x.split(args.batch), y.split(args.batch)):
        loss = nn.functional.mse_loss(net(xb), yb)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        running = loss.detach() if running is None else 0.99 * running + 0.01 * loss.detach()
        done += len(xb)
        if done % 10240 == 0:
            print(f"{done} samples: {running.item():.4f}")


if __name__ == "__main__":
    main()
