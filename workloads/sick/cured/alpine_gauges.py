# The cure of ../alpine_gauges.py: the logs are averaged to hours once, when they come in.
"""Forecasts the next hours of mountain streams from a fortnight of gauge readings.

One file a station and season. Newer gauges send hourly means (.npy), the old ones a log of
single readings as text (.log), which is averaged to hours once, when it comes in.
"""
import argparse
import datetime
import pathlib
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

HOURS = 14 * 24
AHEAD = 12
START = datetime.datetime(2021, 5, 3)
STAMP = "%Y-%m-%d %H:%M:%S"


def stream(rng):
    """Hourly levels of a stream: melt by day, rain now and then."""
    hours = np.arange(HOURS)
    levels = 50 + 8 * np.sin(2 * np.pi * (hours - rng.uniform(0, 24)) / 24)
    for begin in rng.integers(0, HOURS, size=4):
        levels[begin:] += rng.uniform(5, 30) * np.exp(-np.arange(HOURS - begin) / rng.uniform(6, 30))
    return levels + rng.normal(0, 0.6, HOURS)


def hourly_from_log(path):
    """Means by the hour of a log with lines 'date time;level'."""
    sums, counts = [0.0] * HOURS, [0] * HOURS
    with open(path) as lines:
        for line in lines:
            stamp, level = line.split(";")
            hour = int((datetime.datetime.strptime(stamp, STAMP) - START).total_seconds()) // 3600
            sums[hour] += float(level)
            counts[hour] += 1
    return np.array(sums) / np.array(counts)


def write_log(path, levels, every, rng):
    seconds = np.arange(0, HOURS * 3600, every)
    readings = levels[seconds // 3600] + rng.normal(0, 0.3, len(seconds))
    with open(path, "w") as out:
        for second, level in zip(seconds.tolist(), readings.tolist()):
            out.write(f"{START + datetime.timedelta(seconds=second)};{level:.2f}\n")


def collect(folder, stations, old, seed):
    """What the gauges sent, one file each."""
    rng = np.random.default_rng(seed)
    logs = set(rng.choice(stations, size=old, replace=False).tolist())
    for number in range(stations):
        levels = stream(rng)
        if number in logs:
            log = folder / f"station{number:04}.log"
            write_log(log, levels, 30, rng)
            np.save(log.with_suffix(".npy"), hourly_from_log(log))
            log.unlink()
        else:
            np.save(folder / f"station{number:04}.npy", levels)


class Stations(Dataset):
    def __init__(self, folder):
        self.files = sorted(folder.glob("station*"))

    def __len__(self):
        return len(self.files)

    def __getitem__(self, number):
        path = self.files[number]
        levels = np.load(path)
        levels = torch.from_numpy((levels - levels.mean()) / levels.std()).float()
        return levels[:-AHEAD].unsqueeze(0), levels[-AHEAD:]


class Forecaster(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        layers, before = [], 1
        for gap in (1, 2, 4, 8, 16):
            layers += [nn.Conv1d(before, width, 3, dilation=gap, padding=gap), nn.GELU()]
            before = width
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(width, AHEAD)

    def forward(self, past):
        return self.head(self.body(past)[:, :, -24:].mean(dim=2))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stations", type=int, default=480)
    parser.add_argument("--old", type=int, default=5, help="stations that send logs")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=7)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()

    torch.manual_seed(2)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="gauges") as name:
        folder = pathlib.Path(name)
        collect(folder, args.stations, args.old, seed=2)
        loader = DataLoader(Stations(folder), batch_size=args.batch, shuffle=True, num_workers=args.workers,
                            persistent_workers=args.workers > 0)
        model = Forecaster()
        optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
        for epoch in range(args.epochs):
            squares = 0.0
            for past, future in loader:
                loss = nn.functional.mse_loss(model(past), future)
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
                squares += loss.item()
            print(f"season pass {epoch}: rmse {(squares / len(loader)) ** 0.5:.3f}")


if __name__ == "__main__":
    main()
