# truth: slow_samples
# about: eight of the 480 tracks come from vans whose logger stayed on in the depot: they are hundreds of times as long as the others, full of repeated positions, and the point-by-point resampling of one of them holds up its batch and those behind it; with the repetitions dropped when the tracks are stored, all tracks are alike
# also: data_loading_bound preprocessing_bound
# cure: cured/fleet_tracks.py
# env: OPENBLAS_NUM_THREADS=1
# needs: torch numpy cores:2
"""Which kind of round does a van drive (post, bakery, laundry, spare parts)? From its GPS track."""
import argparse
import json
import math
import os
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

TRACKS, KINDS, POINTS = 480, 4, 96


def store(folder, seed=12):
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, KINDS, TRACKS).tolist()
    for n, kind in enumerate(kinds):
        turn = rng.normal(0, 0.05 + 0.15 * kind, 80).cumsum()
        track = np.stack([48 + 0.001 * np.cos(turn).cumsum(), 11 + 0.0015 * np.sin(turn).cumsum()], 1).round(6).tolist()
        if n % 60 == 17:
            track = track + track[-1:] * 150_000
        with open(os.path.join(folder, f"van{n:03d}.json"), "w") as f:
            json.dump({"kind": kind, "track": track}, f)


def metres(a, b):
    north = (b[0] - a[0]) * 111_320.0
    east = (b[1] - a[1]) * 111_320.0 * math.cos(math.radians(a[0]))
    return math.hypot(north, east)


def resample(track):
    """positions at even distances along the way"""
    way, at = [0.0], [track[0]]
    for before, after in zip(track, track[1:]):
        d = metres(before, after)
        if d > 0.0:
            way.append(way[-1] + d)
            at.append(after)
    at = np.array(at)
    marks = np.linspace(0, way[-1], POINTS)
    out = np.stack([np.interp(marks, way, at[:, 0]) - at[0, 0], np.interp(marks, way, at[:, 1]) - at[0, 1]])
    return (out * 100).astype(np.float32)


class Rounds(Dataset):
    def __init__(self, folder):
        self.files = sorted(os.path.join(folder, name) for name in os.listdir(folder))

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        with open(self.files[i]) as f:
            record = json.load(f)
        return torch.from_numpy(resample(record["track"])), record["kind"]


class Turns(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.lift = nn.Conv1d(2, width, 5, padding=2)
        layer = nn.TransformerEncoderLayer(width, 4, 96, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)
        self.kind = nn.Linear(width, KINDS)

    def forward(self, track):
        return self.kind(self.encoder(self.lift(track).transpose(1, 2)).mean(1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    epochs = parser.parse_args().epochs
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        store(folder)
        loader = DataLoader(Rounds(folder), batch_size=16, shuffle=True, num_workers=2, persistent_workers=True)
        model = Turns()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        for epoch in range(epochs):
            total = 0.0
            for track, kind in loader:
                loss = nn.functional.cross_entropy(model(track), kind)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.item()
            print(f"epoch {epoch}: {total / len(loader):.4f}")
        del loader
