# truth: slow_samples
# about: about one recording in eighty has dropouts, and those few are repaired point by point with a rolling median, which takes hundreds of times as long as loading a good one
# also: data_loading_bound preprocessing_bound
# cure: --fill interp
# needs: torch numpy cores:2
"""1-d convolutional network on vibration recordings, one .npy file each"""
import argparse
import os
import shutil
import tempfile

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

RECORDINGS = 1280
LENGTH = 8192


def make_recordings(root):
    rng = np.random.default_rng(42)
    broken = set(rng.choice(RECORDINGS, size=16, replace=False).tolist())
    for i in range(RECORDINGS):
        tone = np.sin(np.arange(LENGTH) * (0.02 + 0.01 * (i % 5)))
        wave = (tone + rng.standard_normal(LENGTH)).astype(np.float32)
        if i in broken:
            for start in rng.integers(0, LENGTH - 40, size=6):
                wave[start:start + 40] = np.nan
        np.save(os.path.join(root, f"{i:05d}.npy"), wave)


def fill_hampel(wave, half=50):
    """Rolling median; what is missing or far from it is replaced."""
    clean = wave.copy()
    for k in range(len(wave)):
        window = wave[max(0, k - half):k + half + 1]
        middle = np.nanmedian(window)
        spread = np.nanmedian(np.abs(window - middle))
        if not abs(wave[k] - middle) <= 8 * spread:
            clean[k] = middle
    return clean


def fill_interp(wave):
    missing = np.isnan(wave)
    wave[missing] = np.interp(np.flatnonzero(missing), np.flatnonzero(~missing), wave[~missing])
    return wave


class Vibrations(Dataset):
    def __init__(self, root, fill):
        self.root = root
        self.names = sorted(os.listdir(root))
        self.fill = fill

    def __len__(self):
        return len(self.names)

    def __getitem__(self, i):
        wave = np.load(os.path.join(self.root, self.names[i]))
        if np.isnan(wave).any():
            wave = self.fill(wave)
        wave = (wave - wave.mean()) / (wave.std() + 1e-6)
        return torch.from_numpy(wave).unsqueeze(0), i % 5


def build():
    layers, channels = [], 1
    for width in (16, 32, 32):
        layers += [nn.Conv1d(channels, width, 9, stride=4, padding=4), nn.BatchNorm1d(width), nn.ReLU()]
        channels = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(channels, 5))


def run(root, args):
    make_recordings(root)
    data = Vibrations(root, fill_hampel if args.fill == "hampel" else fill_interp)
    loader = DataLoader(data, batch_size=16, shuffle=True, num_workers=2, drop_last=True,
                        generator=torch.Generator().manual_seed(args.seed))
    model = build()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for batch, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        if batch % 16 == 0:
            print(f"{batch:4d} {loss.item():.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--fill", choices=["hampel", "interp"], default="hampel")
    parser.add_argument("--seed", type=int, default=9)
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    folder = tempfile.mkdtemp(prefix="vibrations-")
    try:
        run(folder, arguments)
    finally:
        shutil.rmtree(folder)
