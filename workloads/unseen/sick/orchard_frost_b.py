# truth: metadata_bound
# about: a night in the orchard is a folder of 40 tiny logger files, and for each sample the folder is listed and each file is looked up, stat-ed and opened for some two hundred bytes
# also: data_loading_bound small_reads
# cure: cured/orchard_frost_b.py
# needs: torch numpy
"""Frost warning: will it freeze before sunrise, from the loggers that hang in the trees."""
import argparse
import os
import shutil
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, RandomSampler

LOGGERS, READINGS = 40, 48


def collect_season(root, nights, seed):
    rng = np.random.default_rng(seed)
    frost = rng.integers(0, 2, nights)
    for night in range(nights):
        folder = os.path.join(root, f"night_{night:03d}")
        os.mkdir(folder)
        fall = np.linspace(0, 4 + 3 * frost[night], READINGS)
        curves = 7 - fall + rng.normal(0, 1.5, (LOGGERS, READINGS))
        for logger in range(LOGGERS):
            with open(os.path.join(folder, f"logger_{logger:02d}.bin"), "wb") as out:
                out.write(curves[logger].astype(np.float32).tobytes())
    return frost


class Nights(Dataset):
    def __init__(self, root, frost):
        self.root = root
        self.frost = frost

    def __len__(self):
        return len(self.frost)

    def usable(self, path):
        if os.path.exists(path + ".broken"):
            return False
        return os.stat(path).st_size == READINGS * 4

    def load_night(self, night):
        folder = os.path.join(self.root, f"night_{night:03d}")
        curves = np.zeros((LOGGERS, READINGS), dtype=np.float32)
        for row, name in enumerate(sorted(os.listdir(folder))):
            path = os.path.join(folder, name)
            if self.usable(path):
                with open(path, "rb") as handle:
                    curves[row] = np.frombuffer(handle.read(), dtype=np.float32)
        return curves

    def __getitem__(self, night):
        return torch.from_numpy(self.load_night(night)), float(self.frost[night])


class FrostNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(LOGGERS, width, 3, padding=1), nn.ReLU(),
            nn.Conv1d(width, width, 3, padding=2, dilation=2), nn.ReLU(),
            nn.Conv1d(width, width, 3, padding=4, dilation=4), nn.ReLU())
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.body(x).mean(2)).squeeze(1)


class Training:
    def __init__(self, options, dataset):
        picks = RandomSampler(dataset, replacement=True, num_samples=options.steps * options.batch)
        self.loader = DataLoader(dataset, batch_size=options.batch, sampler=picks)
        self.model = FrostNet(options.width)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=options.lr)
        self.criterion = nn.BCEWithLogitsLoss()

    def update(self, curves, frost):
        loss = self.criterion(self.model(curves), frost.float())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def run(self):
        smooth = None
        for step, (curves, frost) in enumerate(self.loader):
            loss = self.update(curves, frost)
            smooth = loss if smooth is None else 0.95 * smooth + 0.05 * loss
            if step % 50 == 0:
                print(f"step {step}: loss {smooth:.4f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nights", type=int, default=100)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--steps", type=int, default=280)
    parser.add_argument("--width", type=int, default=96)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=3)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    root = tempfile.mkdtemp(prefix="orchard_")
    try:
        frost = collect_season(root, options.nights, options.seed)
        Training(options, Nights(root, frost)).run()
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
