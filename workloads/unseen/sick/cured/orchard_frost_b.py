# The program beside it, cured; the season is one file, a night is one read of it.
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
    with open(os.path.join(root, "season.bin"), "wb") as out:
        for night in range(nights):
            fall = np.linspace(0, 4 + 3 * frost[night], READINGS)
            curves = 7 - fall + rng.normal(0, 1.5, (LOGGERS, READINGS))
            out.write(curves.astype(np.float32).tobytes())
    return frost


class Nights(Dataset):
    def __init__(self, root, frost):
        self.path = os.path.join(root, "season.bin")
        self.frost = frost
        self.handle = None

    def __len__(self):
        return len(self.frost)

    def load_night(self, night):
        if self.handle is None:
            self.handle = open(self.path, "rb", buffering=0)
        size = LOGGERS * READINGS * 4
        self.handle.seek(night * size)
        curves = np.frombuffer(self.handle.read(size), dtype=np.float32)
        return curves.reshape(LOGGERS, READINGS).copy()

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
