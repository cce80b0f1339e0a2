"""Pulsar candidates: real or interference, from the folded (channel x phase) picture of an observation."""
import argparse
import os
import shutil
import tempfile
import time

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

OBS, RAW, CHANNELS, BINS, TICKS = 512, 8, 64, 64, 24000
TRIALS = np.linspace(0.0, 90.0, 7)


def fold(series, period, dm):
    """Filterbank (CHANNELS, TICKS) -> (CHANNELS, BINS): shift every channel by its delay, then add up by phase."""
    out = np.empty((CHANNELS, BINS), np.float32)
    ticks = np.arange(TICKS)
    for c in range(CHANNELS):
        phase = ((ticks - dm * c / 8) % period / period * BINS).astype(np.int64) % BINS
        out[c] = np.bincount(phase, weights=series[c], minlength=BINS)
    return out


def best_fold(series, period):
    folds = [fold(series, period, dm) for dm in TRIALS]
    return max(folds, key=lambda f: f.sum(0).std())


def observe(folder, seed=12):
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, OBS)
    raw = set(rng.choice(OBS, RAW, replace=False).tolist())
    phase = np.arange(BINS)
    for i in range(OBS):
        if i in raw:
            series = rng.integers(0, 60, (CHANNELS, TICKS), dtype=np.uint8)
            if label[i]:
                series[:, :: 500] += 90
            np.save(os.path.join(folder, "obs%03d.fil.npy" % i), series)
        else:
            picture = rng.normal(0, 1, (CHANNELS, BINS))
            if label[i]:
                picture += 1.5 * np.exp(-0.5 * ((phase - rng.integers(BINS)) / 3) ** 2)
            np.save(os.path.join(folder, "obs%03d.npy" % i), picture.astype(np.float32))
    return label


class Candidates(Dataset):
    def __init__(self, folder, label):
        self.label = label
        self.files = [os.path.join(folder, f) for f in sorted(os.listdir(folder))]

    def __len__(self):
        return OBS

    def __getitem__(self, i):
        data = np.load(self.files[i])
        data = (data - data.mean()) / data.std()
        data = np.roll(data, np.random.randint(BINS), axis=1)
        return torch.from_numpy(data[None].astype(np.float32)), torch.tensor(float(self.label[i]))


def fold_all(folder):
    """Once, before the training: filterbanks become folded pictures like all the others."""
    for f in sorted(os.listdir(folder)):
        if f.endswith(".fil.npy"):
            path = os.path.join(folder, f)
            np.save(path.replace(".fil.npy", ".npy"), best_fold(np.load(path), 500.0))
            os.remove(path)


def conv(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, stride=2, padding=1), nn.BatchNorm2d(o), nn.ReLU())


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=9)
    a = p.parse_args()
    torch.manual_seed(12)
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="pulsar")
    try:
        label = observe(folder)
        fold_all(folder)
        loader = DataLoader(Candidates(folder, label), batch_size=16, shuffle=True, num_workers=2, persistent_workers=True)
        model = nn.Sequential(conv(1, 8), conv(8, 16), conv(16, 24), nn.Flatten(), nn.Linear(24 * 64, 1))
        optim = torch.optim.Adam(model.parameters(), 1e-3)
        t0, n = time.time(), 0
        for epoch in range(a.epochs):
            hits = 0
            for x, y in loader:
                logit = model(x).squeeze(1)
                loss = nn.functional.binary_cross_entropy_with_logits(logit, y)
                optim.zero_grad()
                loss.backward()
                optim.step()
                hits += ((logit > 0).float() == y).sum().item()
                n += 1
            print(f"epoch {epoch}: {hits / OBS:.3f}")
        print(f"{n} steps {time.time() - t0:.2f} s, {1e3 * (time.time() - t0) / n:.1f} ms/step")
    finally:
        shutil.rmtree(folder)
