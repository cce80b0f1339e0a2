# truth: data_loading_bound
# about: seismograms are fetched one by one from a remote archive (the sleep of 5 ms is the latency of its request), and the loader has no workers, so the requests of a batch come one after the other while both cores are idle
# also: io_wait
# advice: num_workers
# cure: --workers 8
# whatif: workers=8
# needs: torch
"""Earthquake or blast: a one-dimensional ResNet over three-component seismograms out of a station archive."""
import argparse
import os
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SAMPLES = 600
EVENTS = 640


class Archive:
    """One big file of waveforms behind a service with a round trip per request."""

    ROUND_TRIP = 0.005

    def __init__(self, path):
        self.path = path
        self.fd = None

    def get(self, event):
        if self.fd is None:
            self.fd = os.open(self.path, os.O_RDONLY)
        time.sleep(self.ROUND_TRIP)
        size = 3 * SAMPLES * 2
        return os.pread(self.fd, size, event * size)


class Events(Dataset):
    def __init__(self, archive, labels):
        self.archive = archive
        self.labels = labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, event):
        raw = np.frombuffer(self.archive.get(event), np.int16).reshape(3, SAMPLES)
        wave = raw.astype(np.float32)
        wave /= np.abs(wave).max() + 1.0
        return torch.from_numpy(wave), self.labels[event]


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(nn.Conv1d(channels, channels, 5, padding=2), nn.BatchNorm1d(channels), nn.ReLU(),
                                  nn.Conv1d(channels, channels, 5, padding=2), nn.BatchNorm1d(channels))

    def forward(self, x):
        return torch.relu(x + self.body(x))


def record(path, generator):
    labels = generator.integers(0, 2, EVENTS)
    t = np.arange(SAMPLES) / 100.0
    with open(path, "wb") as out:
        for label in labels:
            onset = generator.uniform(1.0, 2.5)
            decay = 0.8 if label else 2.2
            envelope = np.where(t > onset, np.exp(-(t - onset) / decay), 0.0)
            tone = np.sin(2 * np.pi * generator.uniform(4, 9) * t)
            wave = envelope * tone + 0.1 * generator.standard_normal((3, SAMPLES))
            out.write((wave * 4000).astype(np.int16).tobytes())
    return torch.from_numpy(labels)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=2)
    options = parser.parse_args()
    torch.manual_seed(11)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "waveforms.i16")
        labels = record(path, np.random.default_rng(11))
        loader = DataLoader(Events(Archive(path), labels), batch_size=16, shuffle=True, num_workers=options.workers,
                            persistent_workers=options.workers > 0)
        model = nn.Sequential(nn.Conv1d(3, 16, 7, stride=4, padding=3), nn.ReLU(), Block(16), Block(16),
                              nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(16, 2))
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
        loss_of = nn.CrossEntropyLoss()
        begin, steps = time.perf_counter(), 0
        for epoch in range(options.epochs):
            total = 0.0
            for waves, kinds in loader:
                optimizer.zero_grad(set_to_none=True)
                loss = loss_of(model(waves), kinds)
                loss.backward()
                optimizer.step()
                total += loss.item()
                steps += 1
            print(f"epoch {epoch}: loss {total / len(loader):.3f}")
        print(f"{steps} steps, {(time.perf_counter() - begin) / steps * 1e3:.1f} ms each")


if __name__ == "__main__":
    main()
