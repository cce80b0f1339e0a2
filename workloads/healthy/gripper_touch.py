# truth: none
# about: recordings are read from files in large pieces by one loader worker that is always ahead of an attention net on both cores; nothing to gain
# needs: torch numpy
"""Does the object slip? Attention over the moments of a gripper's tactile recordings."""
import os
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

MOMENTS, TAXELS = 48, 40


def record(folder, shards=8, batches=12, size=32):
    rng = np.random.default_rng(17)
    for k in range(shards):
        touch = rng.normal(size=(batches, size, MOMENTS, TAXELS)).astype(np.float32)
        slip = rng.integers(0, 2, (batches, size))
        touch[slip == 1, 24:] += 0.15
        np.savez(os.path.join(folder, "rec%d.npz" % k), touch=touch, slip=slip)


class Recordings(IterableDataset):
    """Whole shards, already in batches."""

    def __init__(self, folder):
        self.paths = sorted(os.path.join(folder, n) for n in os.listdir(folder))

    def __iter__(self):
        for path in self.paths:
            with np.load(path) as shard:
                touch, slip = shard["touch"], shard["slip"]
            for x, y in zip(touch, slip):
                yield torch.from_numpy(x), torch.from_numpy(y)


class TouchNet(nn.Module):
    def __init__(self, width=160):
        super().__init__()
        self.embed = nn.Linear(TAXELS, width)
        self.where = nn.Parameter(torch.randn(MOMENTS, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, 4, 3 * width, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(width, 2)

    def forward(self, x):
        return self.head(self.encoder(self.embed(x) + self.where).mean(1))


def main():
    torch.manual_seed(17)
    torch.set_num_threads(2)
    with tempfile.TemporaryDirectory(prefix="touch") as folder:
        record(folder)
        loader = DataLoader(Recordings(folder), batch_size=None, num_workers=1, prefetch_factor=4, persistent_workers=True)
        net = TouchNet()
        opt = torch.optim.SGD(net.parameters(), 0.02, momentum=0.9)
        began, steps, right, seen = time.perf_counter(), 0, torch.zeros(()), 0
        for touch, slip in loader:
            out = net(touch)
            loss = nn.functional.cross_entropy(out, slip)
            opt.zero_grad()
            loss.backward()
            opt.step()
            steps, seen = steps + 1, seen + len(slip)
            right += (out.detach().argmax(1) == slip).sum()
        print("%d steps, %.3f right, %.2f ms per step" % (steps, right / seen, 1e3 * (time.perf_counter() - began) / steps))


if __name__ == "__main__":
    main()
