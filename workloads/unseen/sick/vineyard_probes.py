# truth: metadata_bound
# about: each probe's day is a file of its own of 96 bytes, so a row of vines is a listing and some fifty opens, and opening, stat-ing and listing cost much more than the bytes that are read
# also: data_loading_bound small_reads preprocessing_bound
# cure: --packed
# needs: torch numpy
"""Forecasts the water need of vineyard rows from soil moisture probes.

Every row of vines has a folder, every probe and day a small file in it, as the field logger left them. A GRU reads the
days of a row. (--packed first gathers each row's days in one array, as an import would.)
"""
import argparse
import os
import shutil
import tempfile
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the workers need the cores too

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, RandomSampler

PROBES, DAYS, HOURS = 4, 14, 24


def field_logger(folder, rows, seed):
    rng = np.random.default_rng(seed)
    needs = rng.uniform(0, 1, rows).astype(np.float32)
    for row in range(rows):
        place = os.path.join(folder, "row%04d" % row)
        os.mkdir(place)
        base = 0.5 - 0.3 * needs[row]
        moist = base + 0.02 * rng.standard_normal((PROBES, DAYS, HOURS)).cumsum(axis=2)
        moist = moist.astype(np.float32)
        for probe in range(PROBES):
            for day in range(DAYS):
                moist[probe, day].tofile(os.path.join(place, "p%d_%02d.raw" % (probe, day)))
    return needs


def read_row(place):
    days = {}
    for name in sorted(os.listdir(place)):
        path = os.path.join(place, name)
        if not os.path.isfile(path) or os.path.getsize(path) != HOURS * 4:
            continue  # the logger was switched off in the middle of the day
        probe, day = name[1:-4].split("_")
        days[int(probe), int(day)] = np.fromfile(path, np.float32)
    row = np.zeros((DAYS, PROBES * HOURS), np.float32)
    for (probe, day), hours in days.items():
        row[day, probe * HOURS:(probe + 1) * HOURS] = hours
    return row


class Rows(Dataset):
    def __init__(self, folder, needs):
        self.places = sorted(os.path.join(folder, name) for name in os.listdir(folder))
        self.needs = needs

    def __len__(self):
        return len(self.places)

    def __getitem__(self, i):
        return torch.from_numpy(read_row(self.places[i])), self.needs[i]


class PackedRows(Rows):
    def __init__(self, folder, needs):
        super().__init__(folder, needs)
        self.pack = np.stack([read_row(place) for place in self.places])

    def __getitem__(self, i):
        return torch.from_numpy(self.pack[i]), self.needs[i]


class Need(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.days = nn.GRU(PROBES * HOURS, width, batch_first=True)
        self.out = nn.Linear(width, 1)

    def forward(self, row):
        _, last = self.days(row)
        return self.out(last[0])[:, 0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--packed", action="store_true")
    parser.add_argument("--steps", type=int, default=380)
    args = parser.parse_args()
    torch.manual_seed(8)
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="vines_")
    try:
        needs = field_logger(folder, 72, 8)
        rows = (PackedRows if args.packed else Rows)(folder, needs)
        draw = RandomSampler(rows, replacement=True, num_samples=24 * args.steps)
        loader = DataLoader(rows, batch_size=24, sampler=draw, num_workers=2)
        model = Need()
        optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
        begin, steps = time.perf_counter(), 0
        for row, need in loader:
            loss = nn.functional.smooth_l1_loss(model(row), need)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
        took = time.perf_counter() - begin
        print("%d steps, last loss %.4f, %.2f ms a step" % (steps, loss.item(), took / steps * 1e3))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
