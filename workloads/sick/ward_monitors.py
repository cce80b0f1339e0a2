#!/usr/bin/env python3
# truth: slow_samples
# about: one record in a hundred or so has a loosened electrode and goes through a repair in nested Python loops that takes a thousand times as long as an ordinary record and more; batches come in order, so the whole loop stands until it is done
# also: data_loading_bound preprocessing_bound
# cure: cured/ward_monitors.py
# needs: torch numpy
"""Early warning on the ward: pulse waves of the bedside monitors, a convolutional network and a GRU, 3 grades of risk."""
import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

POINTS = 1500


def record(seed):
    """Three channels of a monitor; where the electrode was loose the values are missing (nan)."""
    rng = np.random.default_rng(seed)
    risk = seed % 3
    t = np.arange(POINTS) / 100
    wave = np.stack([np.sin(2 * np.pi * (1 + 0.3 * risk) * t + p) for p in rng.uniform(0, 3, 3)])
    wave = (wave + rng.normal(0, 0.2, wave.shape)).astype(np.float32)
    if rng.random() < 1 / 80:
        wave[:, rng.random(POINTS) < 0.5] = np.nan
    return wave, risk


def repair(wave):
    """Missing values become the mean of the known ones, weighted by their nearness in time."""
    known = [i for i in range(POINTS) if not np.isnan(wave[0, i])]
    out = wave.copy()
    for i in range(POINTS):
        if np.isnan(wave[0, i]):
            total, sums = 0.0, [0.0, 0.0, 0.0]
            for j in known:
                if abs(j - i) <= 600:
                    w = 1.0 / (j - i) ** 2
                    total += w
                    for c in range(3):
                        sums[c] += w * float(wave[c, j])
            out[:, i] = [s / total for s in sums]
    return out


class Ward(Dataset):
    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        wave, risk = record(index)
        if np.isnan(wave).any():
            wave = repair(wave)
        return torch.from_numpy(wave), risk


class Warning_(nn.Module):
    def __init__(self):
        super().__init__()
        self.front = nn.Sequential(nn.Conv1d(3, 32, 11, stride=5), nn.ReLU(), nn.Conv1d(32, 64, 7, stride=4), nn.ReLU())
        self.rnn = nn.GRU(64, 64, batch_first=True)
        self.grade = nn.Linear(64, 3)

    def forward(self, wave):
        _, last = self.rnn(self.front(wave).transpose(1, 2))
        return self.grade(last[0])


def main(argv=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=1120)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=16)
    args = parser.parse_args(argv)
    torch.manual_seed(5)
    torch.set_num_threads(1)
    loader = DataLoader(Ward(args.records), batch_size=args.batch, shuffle=True, num_workers=2, persistent_workers=True)
    model = Warning_()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    durations = []
    for epoch in range(args.epochs):
        since = time.perf_counter()
        for waves, risks in loader:
            loss = nn.functional.cross_entropy(model(waves), risks)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            now = time.perf_counter()
            durations.append(now - since)
            since = now
        print(f"epoch {epoch}: loss {loss.item():.3f}")
    print(f"{len(durations)} steps, {1000 * np.mean(durations):.1f} ms a step, median {1000 * np.median(durations):.1f}")


if __name__ == "__main__":
    main()
