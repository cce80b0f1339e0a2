# truth: none
# about: a stream of waybills is read from shards in large pieces by one worker, each record costs a few microseconds, and the network takes nearly all of the time
# needs: torch numpy
"""Finds wrongly declared freight in a stream of waybills: an iterable data set over binary shards."""
import os
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

FIELDS, SHARDS, ROWS, BATCH = 96, 6, 12_800, 640


def write_shards(folder):
    rng = np.random.default_rng(43)
    paths = []
    for s in range(SHARDS):
        rows = rng.standard_normal((ROWS, FIELDS + 1), dtype=np.float32)
        rows[:, -1] = (rows[:, :6].sum(1) + rows[:, 7] * rows[:, 8] > 1)
        paths.append(os.path.join(folder, "waybills-%d.bin" % s))
        rows.tofile(paths[-1])
    return paths


class Waybills(IterableDataset):
    """Whole batches, read one after the other; the rows of a shard were shuffled when it was written."""

    def __init__(self, paths):
        self.paths = paths

    def __iter__(self):
        for path in self.paths:
            with open(path, "rb") as shard:
                while True:
                    piece = shard.read(BATCH * (FIELDS + 1) * 4)
                    if not piece:
                        break
                    rows = torch.from_numpy(np.frombuffer(piece, np.float32).reshape(-1, FIELDS + 1).copy())
                    yield rows[:, :-1], rows[:, -1]


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.one, self.two = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        return x + self.two(torch.relu(self.one(x)))


def main():
    torch.manual_seed(43)
    with tempfile.TemporaryDirectory(prefix="waybills-") as folder:
        loader = DataLoader(Waybills(write_shards(folder)), batch_size=None, num_workers=1)
        model = nn.Sequential(nn.Linear(FIELDS, 640), Residual(640), Residual(640), nn.LayerNorm(640), nn.Linear(640, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=.01, momentum=.9)
        steps, total, began = 0, 0.0, time.perf_counter()
        for fields, wrong in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(model(fields).squeeze(1), wrong)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += loss.item()
            steps += 1
            if steps % 30 == 0:
                print("step %d: loss %.3f" % (steps, total / steps))
        took = time.perf_counter() - began
    print("%d steps, %.1f ms per step" % (steps, took / steps * 1e3))


if __name__ == "__main__":
    main()
