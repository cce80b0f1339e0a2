# truth: worker_memory_growth
# about: the log of searches is a list of a million tuples of strings and numbers, made before the workers are forked; every look at a row changes its reference counts, so page after page of the list is copied into each worker
# gain: none
# cure: --packed
# needs: torch numpy
"""Will the result be clicked: hashed words of query and user against the shown item; log held in memory."""
import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SLOTS = 1 << 15


def search_log(rows):
    """Who asked what, what was shown, at which rank, clicked or not."""
    rng = np.random.default_rng(29)
    user = rng.integers(1, 400000, rows)
    query = rng.integers(1, 250000, rows)
    item = rng.integers(1, 90000, rows)
    rank = rng.integers(1, 20, rows)
    click = (rng.random(rows) < 0.5 / rank).astype(np.int64)
    return user, query, item, rank, click


class SearchLog(Dataset):
    def __init__(self, columns):
        self.rows = [(f"user-{u:07d}", f"query about {q:06d}", f"sku{i}", 1.0 / r, c)
                     for u, q, i, r, c in zip(*(c.tolist() for c in columns))]

    def __len__(self):
        return len(self.rows)

    def texts(self, i):
        return self.rows[i]

    def __getitem__(self, i):
        user, query, item, weight, click = self.texts(i)
        slots = [self.slot(user), self.slot(query), self.slot(item), self.slot(user[-3:] + item)]
        return slots, weight, click

    @staticmethod
    def slot(text):
        h = 2166136261
        for byte in text.encode():
            h = (h ^ byte) * 16777619 & 0xFFFFFFFF
        return h % SLOTS


class PackedLog(SearchLog):
    """The same rows as columns of numbers; the strings of a row are made when it is asked for."""

    def __init__(self, columns):
        self.columns = columns

    def __len__(self):
        return len(self.columns[0])

    def texts(self, i):
        u, q, item, r, c = (int(column[i]) for column in self.columns)
        return f"user-{u:07d}", f"query about {q:06d}", f"sku{item}", 1.0 / r, c


def collate(rows):
    slots, weight, click = zip(*rows)
    return torch.tensor(slots), torch.tensor(weight), torch.tensor(click, dtype=torch.float32)


class Clicks(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(SLOTS, 32)
        self.deep = nn.Sequential(nn.Linear(4 * 32 + 1, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(),
                                  nn.Linear(128, 1))

    def forward(self, slots, weight):
        x = self.table(slots).flatten(1)
        return self.deep(torch.cat([x, weight[:, None]], 1)).squeeze(1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--packed", action="store_true")
    ap.add_argument("--steps", type=int, default=STEPS)
    args = ap.parse_args()
    torch.manual_seed(6)
    data = (PackedLog if args.packed else SearchLog)(search_log(ROWS))
    loader = DataLoader(data, batch_size=512, shuffle=True, num_workers=2, collate_fn=collate)
    net = Clicks()
    opt = torch.optim.Adagrad(net.parameters(), lr=0.02)
    begin = time.perf_counter()
    for step, (slots, weight, click) in enumerate(loader, 1):
        loss = nn.functional.binary_cross_entropy_with_logits(net(slots, weight), click)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 100 == 0:
            print(f"step {step} loss {loss.item():.4f}")
        if step == args.steps:
            break
    spent = time.perf_counter() - begin
    print(f"{step} steps, {spent:.2f} s, {1000 * spent / step:.2f} ms a step")


ROWS = 1000000
STEPS = 700
if __name__ == "__main__":
    main()
