# truth: data_loading_bound
# about: every tide record is asked from a remote archive that answers after 4 to 7 ms (a sleep in the place of the request), and a loader without workers asks for one after the other while the cores are idle
# advice: num_workers
# also: io_wait
# cure: --workers 4
# whatif: workers=4
# needs: torch numpy
"""Forecast of the next six hours at a tide gauge from the four days before."""
import argparse
import os
import shutil
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

HOURS, CHANNELS, AHEAD = 96, 6, 6
RECORD = (HOURS + AHEAD) * CHANNELS


def write_archive(folder, records, seed):
    rng = np.random.default_rng(seed)
    path = os.path.join(folder, "gauges.bin")
    hours = np.arange(HOURS + AHEAD, dtype=np.float32)[:, None]
    with open(path, "wb") as out:
        for _ in range(records):
            period = rng.uniform(11.5, 13.0, CHANNELS)
            shift = rng.uniform(0, 6.28, CHANNELS)
            surge = rng.normal(0, 0.1, (HOURS + AHEAD, CHANNELS)).cumsum(0) * 0.2
            level = np.sin(hours * 6.28 / period + shift) + surge
            out.write(level.astype(np.float32).tobytes())
    return path


class Archive:
    """Stands for the harbour office's web archive: one request per record."""

    def __init__(self, path):
        self.path = path
        self.handle = None

    def request(self, number):
        time.sleep(0.004 + 0.003 * ((number * 37) % 100) / 100)
        if self.handle is None:
            self.handle = os.open(self.path, os.O_RDONLY)
        return os.pread(self.handle, RECORD * 4, number * RECORD * 4)


class TideRecords(Dataset):
    def __init__(self, archive, count):
        self.archive = archive
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        raw = np.frombuffer(self.archive.request(index), dtype=np.float32)
        level = torch.from_numpy(raw.reshape(HOURS + AHEAD, CHANNELS).copy())
        return level[:HOURS], level[HOURS:, 0]


class Forecaster(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.rnn = nn.GRU(CHANNELS, hidden, batch_first=True)
        self.head = nn.Sequential(nn.Linear(hidden, 64), nn.ReLU(), nn.Linear(64, AHEAD))

    def forward(self, x):
        states, _ = self.rnn(x)
        return self.head(states[:, -1])


def train(options, folder):
    torch.manual_seed(options.seed)
    records = options.batch * options.steps_per_epoch
    dataset = TideRecords(Archive(write_archive(folder, records, options.seed)), records)
    loader = DataLoader(dataset, batch_size=options.batch, shuffle=True, drop_last=True,
                        num_workers=options.workers, persistent_workers=options.workers > 0)
    model = Forecaster(options.hidden)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.lr)
    for epoch in range(options.epochs):
        total = 0.0
        for past, future in loader:
            loss = nn.functional.smooth_l1_loss(model(past), future)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += float(loss.detach())
        print(f"epoch {epoch}: loss {total / len(loader):.4f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--steps-per-epoch", type=int, default=34)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=11)
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="harbor_")
    try:
        train(options, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
