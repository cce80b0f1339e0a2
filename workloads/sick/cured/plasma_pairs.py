"""The coupling strength of a dusty plasma, read from how its particles lie: pair distances, their histogram, and a net."""
import math
import time

import torch
from torch import nn

PARTICLES = 3072
BINS = 160
STEPS = 64


def snapshot(gen):
    """A jittered lattice in a periodic box; the stronger the coupling, the less jitter."""
    coupling = torch.rand((), generator=gen)
    side = math.ceil(math.sqrt(PARTICLES))
    k = torch.arange(PARTICLES)
    lattice = torch.stack([(k % side).float(), (k // side).float()], 1) / side
    jitter = torch.randn(PARTICLES, 2, generator=gen) * (1.1 - coupling) * 0.6 / side
    return (lattice + jitter) % 1.0, coupling


class PairHistogram:
    """How many pairs lie at which squared distance, through the periodic walls."""

    def __init__(self):
        self.dx, self.dy, self.whole = (torch.empty(PARTICLES, PARTICLES) for _ in range(3))

    def __call__(self, at):
        dx = torch.sub(at[:, None, 0], at[None, :, 0], out=self.dx)
        dy = torch.sub(at[:, None, 1], at[None, :, 1], out=self.dy)
        dx.sub_(torch.round(dx, out=self.whole))
        dy.sub_(torch.round(dy, out=self.whole))
        r2 = dx.mul_(dx).add_(dy.mul_(dy))
        near = r2[:256]
        return torch.histc(near, BINS, 0.0, 0.02) / PARTICLES, r2.mean()


def main():
    torch.set_num_threads(2)
    torch.manual_seed(77)
    gen = torch.Generator().manual_seed(77)
    net = nn.Sequential(nn.Linear(BINS + 1, 256), nn.ELU(), nn.Linear(256, 256), nn.ELU(), nn.Linear(256, 1))
    opt = torch.optim.RMSprop(net.parameters(), 3e-4)
    pair_histogram = PairHistogram()
    seen, began = [], time.perf_counter()
    for step in range(STEPS):
        at, coupling = snapshot(gen)
        hist, spread = pair_histogram(at)
        seen.append((torch.cat([hist, spread[None]]), coupling))
        seen = seen[-64:]
        x, y = (torch.stack(t) for t in zip(*seen))
        loss = nn.functional.l1_loss(net(x).squeeze(1), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 16 == 15:
            print("step %d: off by %.4f" % (step + 1, loss.item()))
    print("%.2f ms per step" % (1e3 * (time.perf_counter() - began) / STEPS))


if __name__ == "__main__":
    main()
