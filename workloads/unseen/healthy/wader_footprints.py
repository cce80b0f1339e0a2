# truth: none
# about: a small CNN on footprints of waders that lie in memory, batches of a sensible size, flipped as whole batches, tested once an epoch
# needs: torch numpy
"""Footprints of waders in wet sand: six species, 40 x 40 grey pictures."""
import argparse
import time

import numpy as np
import torch
from torch import nn


def prints(count, seed):
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 6, count)
    yy, xx = np.mgrid[-1:1:40j, -1:1:40j]
    pictures = rng.normal(120, 25, (count, 40, 40))
    for k in range(6):
        rows = np.flatnonzero(kind == k)
        toes = sum(np.exp(-40 * (xx * np.sin(a) - yy * np.cos(a)) ** 2) for a in np.linspace(0, 0.3 * (k + 1), 3))
        pictures[rows] -= 30 * toes
    return torch.from_numpy(np.clip(pictures, 0, 255).astype(np.uint8))[:, None], torch.from_numpy(kind)


def batches(pictures, kind, size, generator):
    for pick in torch.randperm(len(kind), generator=generator).split(size):
        x = pictures[pick].float().sub_(120).div_(40)
        if torch.rand((), generator=generator) < 0.5:
            x = x.flip(3)
        yield x, kind[pick]


def block(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU(inplace=True), nn.MaxPool2d(2))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=5)
    ap.add_argument("--count", type=int, default=2048)
    args = ap.parse_args()
    torch.manual_seed(6)
    generator = torch.Generator().manual_seed(6)
    pictures, kind = prints(args.count, 6)
    held, truth = prints(192, 7)
    net = nn.Sequential(block(1, 16), block(16, 32), block(32, 48), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(48, 6))
    opt = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9, nesterov=True)
    began = time.perf_counter()
    for epoch in range(args.epochs):
        net.train()
        for x, y in batches(pictures, kind, 64, generator):
            loss = nn.functional.cross_entropy(net(x), y)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
        net.eval()
        with torch.no_grad():
            right = (net(held.float().sub(120).div(40)).argmax(1) == truth).float().mean().item()
        print(f"epoch {epoch}: loss {loss.item():.4f}, held out {right:.3f}")
    print(f"{time.perf_counter() - began:.2f} s, cpu {time.process_time():.2f}")


if __name__ == "__main__":
    main()
