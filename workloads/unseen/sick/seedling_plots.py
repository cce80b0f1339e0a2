# truth: metadata_bound
# about: every plot's diary is a folder of dozens of tiny text files; for each sample the folder is listed, every file is stat-ed and looked up for a retraction mark, and opened, for a handful of bytes each
# also: data_loading_bound small_reads preprocessing_bound
# cure: cured/seedling_plots.py
# needs: torch numpy
"""Germination trial: height of the seedlings next week from the plot's diary (one small file a day), with a GRU."""
import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, RandomSampler

DAYS, PLOTS = 40, 80


def keep_diaries(root):
    rng = np.random.default_rng(31)
    for plot in range(PLOTS):
        folder = root / f"plot_{plot:03d}"
        folder.mkdir()
        height = np.cumsum(rng.gamma(2.0, 0.4, DAYS))
        for day in range(DAYS):
            (folder / f"day_{day:02d}.txt").write_text("%.2f %.1f %.1f" % (height[day], rng.normal(18, 4), rng.gamma(2, 3)))
            if rng.random() < 0.03:
                (folder / f"day_{day:02d}.retracted").touch()


class Diaries(Dataset):
    def __init__(self, root):
        self.plots = sorted(root.iterdir())

    def __len__(self):
        return len(self.plots)

    def __getitem__(self, i):
        days = []
        for file in sorted(self.plots[i].iterdir()):
            if file.suffix != ".txt" or not file.is_file():
                continue
            if file.with_suffix(".retracted").exists() or file.stat().st_size == 0:
                days.append([0.0, 0.0, 0.0])
                continue
            with open(file) as f:
                days.append([float(v) for v in f.read().split()])
        days = torch.tensor(days) / torch.tensor([30.0, 20.0, 10.0])
        return days[:-7], days[-7:, 0].max()


class Grower(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(3, 24, batch_first=True)
        self.out = nn.Linear(24, 1)

    def forward(self, days):
        return self.out(self.gru(days)[0][:, -1]).squeeze(1)


def train(root, epochs):
    plots = Diaries(root)
    draws = RandomSampler(plots, replacement=True, num_samples=200)
    loader = DataLoader(plots, batch_size=40, sampler=draws, num_workers=2, persistent_workers=True)
    model = Grower()
    opt = torch.optim.RMSprop(model.parameters(), 1e-3)
    for epoch in range(epochs):
        losses = []
        for days, height in loader:
            loss = (model(days) - height).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        yield epoch, len(losses), sum(losses) / len(losses)


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=32)
    args = ap.parse_args()
    torch.manual_seed(31)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="plots") as tmp:
        keep_diaries(Path(tmp))
        began, steps = time.perf_counter(), 0
        for epoch, n, mse in train(Path(tmp), args.epochs):
            steps += n
            if epoch % 5 == 0:
                print(f"epoch {epoch:3d} mse {mse:.4f}")
        took = time.perf_counter() - began
        print(f"{steps} steps, {took:.2f} s, {1e3 * took / steps:.2f} ms each")
