# truth: small_reads
# about: the click log is opened without a buffer, so readline() asks the kernel for every single byte of every line
# also: data_loading_bound
# cure: --buffering -1
# needs: torch numpy
"""Click-through rate from a tab separated log that is too large to hold; lines are found by their offsets."""
import argparse
import os
import tempfile

import numpy as np
import torch
from torch import nn

FIELDS = 24
LINES = 12000
TABLE = 1 << 13


def write_log(path, seed=123):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 1 << 30, size=(LINES, FIELDS))
    clicked = rng.integers(0, 2, size=LINES)
    offsets, position = [], 0
    with open(path, "wb") as f:
        for y, row in zip(clicked.tolist(), values.tolist()):
            line = b"%d\t" % y + b"\t".join(b"%08x" % v for v in row) + b"\n"
            offsets.append(position)
            position += f.write(line)
    return offsets


class ClickLog(torch.utils.data.Dataset):
    def __init__(self, path, offsets, buffering):
        self.offsets = offsets
        # the log may still grow
        self.file = open(path, "rb", buffering=buffering)

    def __len__(self):
        return len(self.offsets)

    def __getitem__(self, i):
        self.file.seek(self.offsets[i])
        cells = self.file.readline().split(b"\t")
        ids = [int(c, 16) % TABLE for c in cells[1:]]
        return torch.tensor(ids), float(cells[0])


class DeepCTR(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.embed = nn.Embedding(TABLE, dim)
        self.deep = nn.Sequential(nn.Linear(FIELDS * dim, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 1))
        self.wide = nn.Embedding(TABLE, 1)

    def forward(self, ids):
        return (self.deep(self.embed(ids).flatten(1)) + self.wide(ids).sum(1)).squeeze(1)


def train(log, steps, batch_size):
    order = torch.utils.data.RandomSampler(log, num_samples=steps * batch_size, replacement=True)
    loader = torch.utils.data.DataLoader(log, batch_size=batch_size, sampler=order)
    model = DeepCTR()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
    running = 0.0
    for step, (ids, clicked) in enumerate(loader, 1):
        loss = nn.functional.binary_cross_entropy_with_logits(model(ids), clicked.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running = loss.item() if step == 1 else 0.9 * running + 0.1 * loss.item()
        if step % 30 == 0:
            print(f"step {step} logloss {running:.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--buffering", type=int, default=0)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--batch-size", type=int, default=256)
    args = parser.parse_args()
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "clicks.tsv")
        train(ClickLog(path, write_log(path), args.buffering), args.steps, args.batch_size)
