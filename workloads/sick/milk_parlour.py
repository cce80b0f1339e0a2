#!/usr/bin/env python3
# truth: small_reads
# about: the table of milkings is read with one system call per 16-byte record, hundreds for every window, although the records of a window lie side by side in the file
# also: data_loading_bound preprocessing_bound
# cure: cured/milk_parlour.py
# needs: torch numpy
"""Tomorrow's yield of a cow from her last milkings. The parlour's meters write one table of fixed records."""
import os
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

RECORD = np.dtype([("cow", "<u2"), ("stall", "<u2"), ("litres", "<f4"), ("minutes", "<f4"), ("conductivity", "<f4")])
COWS, MILKINGS, WINDOW = 40, 2400, 512


def write_table(path):
    rng = np.random.default_rng(40)
    table = np.zeros(COWS * MILKINGS, RECORD)
    day = np.arange(MILKINGS)
    for cow in range(COWS):
        rows = table[cow * MILKINGS:(cow + 1) * MILKINGS]
        rows["cow"], rows["stall"] = cow, rng.integers(0, 24, MILKINGS)
        rows["litres"] = 12 + 3 * np.sin(day / 90 + cow) + rng.normal(0, 0.6, MILKINGS)
        rows["minutes"] = rows["litres"] / 2 + rng.normal(0, 0.5, MILKINGS)
        rows["conductivity"] = 5 + rng.normal(0, 0.3, MILKINGS)
    table.tofile(path)


class Table:
    """Random access to the records of the table."""

    def __init__(self, path):
        self.fd = os.open(path, os.O_RDONLY)

    def rows(self, first, count):
        records = []
        for number in range(first, first + count):
            records.append(os.pread(self.fd, RECORD.itemsize, number * RECORD.itemsize))
        return np.frombuffer(b"".join(records), RECORD)

    def close(self):
        os.close(self.fd)


class Windows(Dataset):
    def __init__(self, table, count, seed=4):
        rng = np.random.default_rng(seed)
        self.table = table
        self.firsts = rng.integers(0, COWS, count) * MILKINGS + rng.integers(0, MILKINGS - WINDOW - 1, count)

    def __len__(self):
        return len(self.firsts)

    def __getitem__(self, i):
        rows = self.table.rows(int(self.firsts[i]), WINDOW + 1)
        x = np.stack([rows["litres"], rows["minutes"], rows["conductivity"]])
        return torch.from_numpy(x[:, :-1] / 10), torch.tensor(x[0, -1])


def make_model():
    return nn.Sequential(nn.AvgPool1d(4), nn.Flatten(), nn.Linear(3 * WINDOW // 4, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(),
                         nn.Linear(64, 1), nn.Flatten(0))


def learn(path, epochs=7, batch=64):
    table = Table(path)
    loader = DataLoader(Windows(table, 3200), batch_size=batch, shuffle=True)
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    count, begin = 0, time.perf_counter()
    for epoch in range(epochs):
        total = 0.0
        for x, y in loader:
            loss = nn.functional.smooth_l1_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            count += 1
        print(f"epoch {epoch}: {total / len(loader):.3f} litres")
    print(f"{count} steps, {1000 * (time.perf_counter() - begin) / count:.1f} ms a step")
    table.close()


if __name__ == "__main__":
    torch.manual_seed(40)
    torch.set_num_threads(1)
    handle, path = tempfile.mkstemp(suffix=".milk")
    os.close(handle)
    try:
        write_table(path)
        learn(path)
    finally:
        os.unlink(path)
