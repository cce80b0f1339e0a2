# truth: oversubscribed
# about: the number of threads is the one of the cluster's job script, 16, on a machine with 2 cores; every small convolution is cut into 16 pieces and waits until all of them had their turn on a core
# cure: --threads 2
# needs: torch
"""Recognise tremor in the signal of a wrist sensor: a small residual network over time."""
import argparse
import math
import time

import torch
from torch import nn

CHANNELS, LENGTH, KINDS = 6, 192, 5


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Conv1d(width, width, 5, padding=2, bias=False)
        self.norm = nn.BatchNorm1d(width)
        self.second = nn.Conv1d(width, width, 5, padding=2)

    def forward(self, signal):
        return signal + self.second(torch.relu(self.norm(self.first(signal))))


class Tremor(nn.Module):
    def __init__(self, width=40, depth=5):
        super().__init__()
        self.enter = nn.Conv1d(CHANNELS, width, 7, stride=2, padding=3)
        self.blocks = nn.Sequential(*[Block(width) for _ in range(depth)])
        self.leave = nn.Linear(width, KINDS)

    def forward(self, signal):
        return self.leave(self.blocks(torch.relu(self.enter(signal))).mean(2))


def wrists(count, generator):
    kinds = torch.arange(count) % KINDS
    clock = torch.arange(LENGTH) / 64.0
    phase = 2 * math.pi * torch.rand(count, CHANNELS, 1, generator=generator)
    wave = torch.sin(2 * math.pi * (3.0 + kinds.float())[:, None, None] * clock + phase)
    return wave + 0.7 * torch.randn(wave.shape, generator=generator), kinds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--steps", type=int, default=150)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(4)
    generator = torch.Generator().manual_seed(4)
    signals, kinds = wrists(1600, generator)
    model = Tremor()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    plan = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=args.steps)
    start = time.perf_counter()
    for step in range(args.steps):
        chosen = torch.randint(0, len(signals), (24,), generator=generator)
        loss = nn.functional.cross_entropy(model(signals[chosen]), kinds[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        plan.step()
        if step % 50 == 49:
            print("step", step + 1, "loss %.3f" % loss.item())
    spent = time.perf_counter() - start
    print("%d steps, %.1f ms per step" % (args.steps, 1e3 * spent / args.steps))


if __name__ == "__main__":
    main()
