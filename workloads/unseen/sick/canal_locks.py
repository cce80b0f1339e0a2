# truth: too_many_workers
# about: the readings are in memory and a batch is a set of views that costs nothing, but eight workers copy each of its 24 tensors into shared memory and send them over, on two cores
# also: oversubscribed shm_pressure allocation_churn
# cure: --workers 0
# whatif: workers=0
# needs: torch numpy
"""Predicts the load of a canal's locks from the gauges of 24 gates."""
import argparse
import os
import shutil
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, RandomSampler

GATES, FINE = 24, 64


def survey(path, rows, seed):
    rng = np.random.default_rng(seed)
    flow = rng.standard_normal((GATES, rows, FINE), dtype=np.float32)
    flow += rng.normal(0, 1, (GATES, rows, 1)).astype(np.float32)
    np.save(path, flow)


class Stretches(Dataset):
    """A batch is a stretch of the canal's log: one tensor of readings for each gate."""

    def __init__(self, flow, length):
        self.flow = flow
        self.length = length
        self.load = flow.mean((0, 2))

    def __len__(self):
        return self.flow.shape[1] // self.length

    def __getitem__(self, number):
        part = slice(number * self.length, (number + 1) * self.length)
        return {"gates": [self.flow[g, part] for g in range(GATES)], "load": self.load[part]}


class GateNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gates = nn.ModuleList(nn.Linear(FINE, 4) for _ in range(GATES))
        self.mix = nn.Sequential(nn.Linear(4 * GATES, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, gates):
        seen = [torch.tanh(layer(x)) for layer, x in zip(self.gates, gates)]
        return self.mix(torch.cat(seen, 1)).squeeze(1)


def train(model, loader, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    total = 0.0
    for number, batch in enumerate(loader, 1):
        loss = (model(batch["gates"]) - batch["load"]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        if number % 60 == 0:
            print(f"{number} stretches: {total / number:.5f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=12288)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--steps", type=int, default=420)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=19)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    folder = tempfile.mkdtemp(prefix="canal_")
    try:
        path = os.path.join(folder, "gauges.npy")
        survey(path, options.rows, options.seed)
        dataset = Stretches(torch.from_numpy(np.load(path)), options.length)
        picks = RandomSampler(dataset, replacement=True, num_samples=options.steps)
        loader = DataLoader(dataset, batch_size=None, sampler=picks, num_workers=options.workers)
        train(GateNet(options.width), loader, options.lr)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
