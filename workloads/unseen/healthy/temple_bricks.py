# truth: none
# about: two views of each brick stamp are made by array work on the whole batch and contrasted; the encoder takes nearly all of the step
# needs: torch numpy
"""Brick stamps of a temple: an embedding in which two impressions of the same stamp are near (contrastive)."""
import argparse
import math
import time

import numpy as np
import torch
from torch import nn


class Kiln:
    """Endless pairs of worn impressions of stamps."""

    def __init__(self, stamps=600, side=32, batch=192, seed=9):
        self.rng = np.random.default_rng(seed)
        self.stamps = (self.rng.random((stamps, side // 4, side // 4)) < 0.5).repeat(4, 1).repeat(4, 2).astype(np.float32)
        self.batch = batch

    def worn(self, which):
        noise = self.rng.standard_normal((self.batch,) + self.stamps.shape[1:], dtype=np.float32)
        return torch.from_numpy(self.stamps[which] + 0.4 * noise)

    def __iter__(self):
        while True:
            which = self.rng.choice(len(self.stamps), self.batch, replace=False)
            yield self.worn(which), self.worn(which)


class Encoder(nn.Module):
    """The stamp as 16 patches, mixed twice."""

    def __init__(self, dim=192):
        super().__init__()
        self.enter = nn.Linear(64, dim)
        self.where = nn.Parameter(torch.randn(16, dim) / math.sqrt(dim))
        self.across = nn.ModuleList(nn.Linear(16, 16) for _ in range(2))
        self.within = nn.ModuleList(nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim))
                                    for _ in range(2))
        self.leave = nn.Linear(dim, 64)

    def forward(self, picture):
        n = len(picture)
        h = self.enter(picture.view(n, 4, 8, 4, 8).transpose(2, 3).reshape(n, 16, 64)) + self.where
        for across, within in zip(self.across, self.within):
            h = h + across(h.transpose(1, 2)).transpose(1, 2)
            h = h + within(h)
        return nn.functional.normalize(self.leave(h.mean(1)), dim=1)


def nearness(a, b, warmth=0.1):
    scores = a @ b.t() / warmth
    same = torch.arange(len(a))
    return (nn.functional.cross_entropy(scores, same) + nn.functional.cross_entropy(scores.t(), same)) / 2


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=100)
    args = ap.parse_args()
    torch.manual_seed(9)
    torch.set_num_threads(2)
    encoder = Encoder()
    opt = torch.optim.AdamW(encoder.parameters(), 5e-4)
    began, cpu, pairing = time.perf_counter(), time.process_time(), 0.0
    pairs = iter(Kiln())
    for step in range(1, args.steps + 1):
        t = time.process_time()
        one, two = next(pairs)
        pairing += time.process_time() - t
        both = encoder(torch.cat([one, two]))
        loss = nearness(*both.chunk(2))
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 25 == 0:
            print(f"{step} {loss.item():.3f}")
    cpu = time.process_time() - cpu
    print(f"{time.perf_counter() - began:.1f} s, cpu {1e3 * cpu / args.steps:.1f} ms a step, pairs {1e3 * pairing / args.steps:.1f} ms")


if __name__ == "__main__":
    main()
