# truth: preprocessing_bound
# about: the transform takes the spectrum of a clip frame by frame and band by band and computes the same waves anew each time, so two workers keep both cores busy and the steps still wait
# cure: cured/cricket_songs.py
# whatif: transform=3.5
# needs: torch numpy
"""Tells species of crickets from one-second recordings."""
import argparse
import os
import shutil
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

RATE = 8000
SPECIES = 6


def record_songs(folder, count, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(RATE) / RATE
    labels = rng.integers(0, SPECIES, count)
    clips = np.empty((count, RATE), dtype=np.int16)
    for i, label in enumerate(labels):
        pitch = 900 + 420 * label + rng.normal(0, 40)
        pulses = np.sin(2 * np.pi * (14 + 3 * label) * t + rng.uniform(0, 6)) > 0.2
        song = np.sin(2 * np.pi * pitch * t) * pulses + rng.normal(0, 0.5, RATE)
        clips[i] = (song * 6000).clip(-32000, 32000)
    np.save(os.path.join(folder, "clips.npy"), clips)
    np.save(os.path.join(folder, "labels.npy"), labels)


class Spectrum:
    """Clip of samples -> log power in bands (bands x frames)."""

    def __init__(self, window=256, hop=128, bands=24):
        self.window = window
        self.hop = hop
        self.bins = np.unique(np.geomspace(6, window // 2 - 1, bands).astype(int))
        self.taper = np.hanning(window)

    def power(self, frame, k):
        n = np.arange(self.window)
        wave = np.exp(-2j * np.pi * k * n / self.window)
        return np.abs(np.sum(frame * wave)) ** 2

    def __call__(self, clip):
        clip = clip.astype(np.float64) / 32768.0
        frames = (len(clip) - self.window) // self.hop + 1
        out = np.empty((len(self.bins), frames))
        for j in range(frames):
            frame = clip[j * self.hop:j * self.hop + self.window] * self.taper
            for i, k in enumerate(self.bins):
                out[i, j] = self.power(frame, k)
        return torch.from_numpy(np.log(out + 1e-6).astype(np.float32))


class Songs(Dataset):
    def __init__(self, folder, transform):
        self.clips = np.load(os.path.join(folder, "clips.npy"), mmap_mode="r")
        self.labels = np.load(os.path.join(folder, "labels.npy"))
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.transform(self.clips[index]).unsqueeze(0), int(self.labels[index])


def build_model():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, SPECIES))


def fit(model, loader, epochs, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    model.train()
    for epoch in range(epochs):
        right = seen = 0
        for spectra, species in loader:
            scores = model(spectra)
            loss = criterion(scores, species)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += int((scores.argmax(1) == species).sum())
            seen += len(species)
        print(f"epoch {epoch}: {right / seen:.1%} of {seen} right")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clips", type=int, default=264)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=5)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    folder = tempfile.mkdtemp(prefix="cricket_")
    try:
        record_songs(folder, options.clips, options.seed)
        loader = DataLoader(Songs(folder, Spectrum()), batch_size=options.batch, shuffle=True,
                            num_workers=options.workers, persistent_workers=options.workers > 0)
        fit(build_model(), loader, options.epochs, options.lr)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
