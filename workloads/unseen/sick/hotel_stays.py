# truth: too_many_workers
# about: the whole table is in memory and a batch is a few index operations, but ten loader processes cut it and ship each of its 36 columns through shared memory, which costs many times the cutting
# also: oversubscribed
# cure: --workers 0
# whatif: workers=0
# needs: torch numpy cores:2
"""Which hotel bookings will be cancelled: one embedding for every column of the booking table."""
import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler

CATEGORIES = {"country": 60, "agent": 90, "market": 8, "channel": 5, "meal": 5, "room": 12, "room_given": 12,
              "deposit": 3, "customer": 4, "month": 12, "weekday": 7, "hotel": 40, "currency": 9, "language": 22,
              "device": 4, "campaign": 50, "loyalty": 5, "rate_plan": 30}
NUMBERS = ["lead_days", "nights", "weekend_nights", "adults", "children", "babies", "earlier_stays", "earlier_cancels",
           "changes", "waiting_days", "rate", "parking", "requests", "distance", "price_gap", "occupancy", "rating",
           "temperature"]


class Bookings(Dataset):
    """Columns; asked for a list of rows, it gives a dictionary of columns."""

    def __init__(self, rows, seed=17):
        rng = np.random.default_rng(seed)
        self.columns = {}
        score = np.zeros(rows, np.float32)
        for name, size in CATEGORIES.items():
            col = rng.integers(0, size, rows)
            score += rng.normal(0, 0.4, size).astype(np.float32)[col]
            self.columns[name] = torch.from_numpy(col)
        for name in NUMBERS:
            col = rng.normal(0, 1, rows).astype(np.float32)
            score += float(rng.normal(0, 0.3)) * col
            self.columns[name] = torch.from_numpy(col)
        self.cancelled = torch.from_numpy((score + rng.logistic(0, 1, rows) > 0).astype(np.float32))

    def __len__(self):
        return len(self.cancelled)

    def __getitem__(self, rows):
        rows = torch.as_tensor(rows)
        return {name: col[rows] for name, col in self.columns.items()}, self.cancelled[rows]


class CancelNet(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.tables = nn.ModuleDict({name: nn.Embedding(size, width) for name, size in CATEGORIES.items()})
        self.norm = nn.BatchNorm1d(len(NUMBERS))
        self.body = nn.Sequential(nn.Linear(len(CATEGORIES) * width + len(NUMBERS), 128), nn.ReLU(),
                                  nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, row):
        parts = [table(row[name]) for name, table in self.tables.items()]
        parts.append(self.norm(torch.stack([row[name] for name in NUMBERS], 1)))
        return self.body(torch.cat(parts, 1)).squeeze(1)


def train(workers, epochs):
    torch.manual_seed(17)
    data = Bookings(102400)
    sampler = BatchSampler(RandomSampler(data), batch_size=1024, drop_last=True)
    loader = DataLoader(data, sampler=sampler, batch_size=None, num_workers=workers, persistent_workers=workers > 0)
    net = CancelNet()
    opt = torch.optim.AdamW(net.parameters(), 3e-3)
    bce = nn.BCEWithLogitsLoss()
    steps, began = 0, time.perf_counter()
    for epoch in range(epochs):
        total = 0.0
        for row, cancelled in loader:
            opt.zero_grad(set_to_none=True)
            loss = bce(net(row), cancelled)
            loss.backward()
            opt.step()
            total += loss.item()
            steps += 1
        print("epoch %d: loss %.4f" % (epoch, total / len(loader)))
    took = time.perf_counter() - began
    print("%d steps, %.1f s, %.2f ms each" % (steps, took, 1e3 * took / steps))


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--workers", type=int, default=10)
    ap.add_argument("--epochs", type=int, default=5)
    opts = ap.parse_args()
    train(opts.workers, opts.epochs)
