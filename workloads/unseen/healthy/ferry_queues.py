# truth: none
# about: a short training of some fifty steps on data in memory, over before anything could be worth changing
# needs: torch numpy
"""How long will the cars wait for the ferry: a plain network on a table."""
import argparse
import os
import shutil
import tempfile

import numpy as np
import torch
from torch import nn


def count_cars(path, rows, seed):
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(rows, 33)).astype(np.float32)
    table[:, 32] = np.abs(table[:, 0] * 2 + table[:, 1] * table[:, 2])
    np.save(path, table)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=27000)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--width", type=int, default=320)
    parser.add_argument("--seed", type=int, default=6)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    folder = tempfile.mkdtemp(prefix="ferry_")
    try:
        path = os.path.join(folder, "queues.npy")
        count_cars(path, options.rows, options.seed)
        table = torch.from_numpy(np.load(path))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    model = nn.Sequential(nn.Linear(32, options.width), nn.ReLU(),
                          nn.Linear(options.width, options.width), nn.ReLU(),
                          nn.Linear(options.width, options.width), nn.ReLU(), nn.Linear(options.width, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    model.train()
    for rows in torch.randperm(len(table)).split(options.batch):
        batch = table[rows]
        loss = nn.functional.l1_loss(model(batch[:, :32]).squeeze(1), batch[:, 32])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"last loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
