#!/usr/bin/env python3
# truth: preprocessing_bound
# about: each rally's racket signal is smoothed and its local spread computed sample by sample in a Python loop over numpy slices, in the loop's own process; the network uses every core in its turn, so workers would only take from it what they give
# or: data_loading_bound
# also: data_loading_bound
# cure: cured/rally_strokes.py
# whatif: transform=24
# needs: torch numpy
"""Tennis: forehand, backhand, serve, volley or slice from a sensor in the racket's handle."""
import os
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

CFG = dict(length=128, axes=6, strokes=5, rallies=720, batch=12, epochs=2, window=9, width=144, lr=5e-4, seed=21)


def record_rallies(cfg):
    rng = np.random.default_rng(cfg["seed"])
    t = np.linspace(0, 1, cfg["length"], dtype=np.float32)
    labels = rng.integers(0, cfg["strokes"], cfg["rallies"])
    swings = rng.normal(0, 0.4, (cfg["rallies"], cfg["axes"], cfg["length"])).astype(np.float32)
    for i, label in enumerate(labels):
        centre = rng.uniform(0.3, 0.7)
        for axis in range(cfg["axes"]):
            swings[i, axis] += np.sin((label + 2) * (axis + 1) * 3 * (t - centre)) * np.exp(-((t - centre) / 0.15) ** 2)
    return swings, labels


def smooth_and_spread(signal, window=CFG["window"]):
    """For every instant the mean and the deviation over the window around it; 6 axes become 12 channels."""
    axes, length = signal.shape
    half = window // 2
    wide = np.pad(signal, ((0, 0), (half, half)), mode="edge")
    out = np.empty((2 * axes, length), dtype=np.float32)
    for instant in range(length):
        piece = wide[:, instant:instant + window]
        out[:axes, instant] = piece.mean(axis=1)
        out[axes:, instant] = piece.std(axis=1)
    return out


class Rallies(Dataset):
    def __init__(self, swings, labels, transform=None):
        self.swings, self.labels, self.transform = swings, labels, transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        signal = self.swings[i]
        if self.transform is not None:
            signal = self.transform(signal)
        return torch.from_numpy(signal), int(self.labels[i])


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Conv1d(width, width, 5, padding=2)
        self.second = nn.Conv1d(width, width, 5, padding=2)

    def forward(self, x):
        return F.relu(x + self.second(F.relu(self.first(x))))


def build(cfg):
    w = cfg["width"]
    return nn.Sequential(nn.Conv1d(2 * cfg["axes"], w, 7, padding=3), nn.ReLU(), Block(w), Block(w),
                         nn.AdaptiveMaxPool1d(1), nn.Flatten(), nn.Linear(w, cfg["strokes"]))


def fit(cfg):
    torch.manual_seed(cfg["seed"])
    swings, labels = record_rallies(cfg)
    loader = DataLoader(Rallies(swings, labels, smooth_and_spread), batch_size=cfg["batch"], shuffle=True, drop_last=True,
                        num_workers=0)
    net = build(cfg)
    optimizer = torch.optim.AdamW(net.parameters(), lr=cfg["lr"])
    times = []
    for epoch in range(cfg["epochs"]):
        begin = time.perf_counter()
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
        times.append((time.perf_counter() - begin) / len(loader))
        print(f"epoch {epoch}  loss {loss.item():.3f}")
    print(f"{1000 * sum(times) / len(times):.1f} ms a step, {cfg['epochs'] * len(loader)} steps")


if __name__ == "__main__":
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    fit(CFG)
