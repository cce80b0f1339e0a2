# truth: oversubscribed
# about: the trainer and each of its two loader workers compute with two threads for every core there is, so their many short parallel regions wait for threads that are not running
# also: data_loading_bound too_many_workers preprocessing_bound
# cure: --threads 1
# whatif: threads=1
# needs: torch numpy
"""Counts fruit in drone pictures of orchard rows: a density map from a small residual net.

The workers make the target maps and blur the pictures with torch, as the trainer computes with torch; all of them take
their thread count from one setting.
"""
import argparse
import os
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIDE = 64


def bell(width, size=9):
    x = torch.arange(size, dtype=torch.float32) - size // 2
    row = torch.exp(-x * x / (2 * width * width))
    kernel = row[:, None] * row[None, :]
    return (kernel / kernel.sum())[None, None]


class Rows(Dataset):
    def __init__(self, count, seed):
        self.count = count
        self.seed = seed
        rng = np.random.default_rng(seed)
        self.leaves = torch.from_numpy(rng.uniform(0, 0.6, (40, 3, SIDE, SIDE)).astype(np.float32))
        self.haze = bell(1.2).repeat(3, 1, 1, 1)
        self.spot = bell(2.0)

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        rng = np.random.default_rng((self.seed, i))
        fruit = int(rng.integers(3, 30))
        where = torch.from_numpy(rng.integers(2, SIDE - 2, (2, fruit)))
        picture = self.leaves[i % len(self.leaves)].clone()
        dots = torch.zeros(1, 1, SIDE, SIDE)
        dots[0, 0, where[0], where[1]] = 1
        density = F.conv2d(dots, self.spot, padding=4)
        picture[0] += 8 * density[0, 0]
        picture = F.conv2d(picture[None], self.haze, padding=4, groups=3)[0]
        return picture, density[0]


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
                                  nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width))

    def forward(self, x):
        return torch.relu(x + self.body(x))


def counter(width=8, blocks=4):
    return nn.Sequential(nn.Conv2d(3, width, 4, stride=2, padding=1), *[Block(width) for _ in range(blocks)],
                         nn.ConvTranspose2d(width, 1, 2, stride=2))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=2 * (os.cpu_count() or 2))
    parser.add_argument("--steps", type=int, default=80)
    args = parser.parse_args()
    torch.manual_seed(21)
    torch.set_num_threads(args.threads)
    loader = DataLoader(Rows(args.steps * 8, 21), batch_size=8, num_workers=2,
                        worker_init_fn=lambda _: torch.set_num_threads(args.threads))
    net = counter()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    begin, off = time.perf_counter(), 0.0
    for picture, density in loader:
        guess = net(picture)
        loss = F.mse_loss(guess, 100 * density)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        off += abs(float(guess.detach().sum()) / 100 - float(density.sum())) / len(picture)
    took = time.perf_counter() - begin
    print("off by %.1f fruit on average, %.2f ms a step" % (off / args.steps, took / args.steps * 1e3))


if __name__ == "__main__":
    main()
