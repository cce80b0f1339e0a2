# truth: none
# about: one lasting worker cuts and jitters short tracks in a fraction of the time that the two encoders of the step need; batches are always there
# needs: torch numpy
"""Tells lynxes apart by how they roam: contrastive learning on two cuts of each GPS track."""
import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset


class Tracks(Dataset):
    def __init__(self, count=1536, length=320):
        rng = np.random.default_rng(77)
        lynx = rng.integers(40, size=count)
        pace = 0.2 + 0.05 * lynx[:, None, None]
        self.tracks = np.cumsum(rng.normal(0, pace, (count, 2, length)), axis=2).astype(np.float32)
        self.cuts = rng.integers(0, length - 256, (count, 2))

    def __len__(self):
        return len(self.tracks)

    def __getitem__(self, i):
        a, b = self.cuts[i]
        return self.tracks[i, :, a:a + 256], self.tracks[i, :, b:b + 256] * np.float32(1.02)


class Roamer(nn.Module):
    def __init__(self, wide=64):
        super().__init__()
        self.first = nn.Conv1d(2, wide, 7, padding=3)
        self.rest = nn.ModuleList(nn.Conv1d(wide, wide, 5, padding=2) for _ in range(3))
        self.out = nn.Linear(wide, 32)

    def forward(self, x):
        x = F.relu(self.first(x - x[..., :1]))
        for layer in self.rest:
            x = F.relu(layer(x))
        return F.normalize(self.out(x.mean(2)), dim=1)


class Experiment:
    def __init__(self, epochs):
        torch.set_num_threads(2)
        torch.manual_seed(77)
        self.epochs = epochs
        self.loader = DataLoader(Tracks(), batch_size=64, shuffle=True, drop_last=True, num_workers=1, persistent_workers=True)
        self.net = Roamer()
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-3)

    def step(self, one, two):
        a, b = self.net(one), self.net(two)
        near = a @ b.T / 0.2
        loss = F.cross_entropy(near, torch.arange(len(near)))
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss

    def run(self):
        steps, began, cpu = 0, time.perf_counter(), time.process_time()
        for _ in range(self.epochs):
            for one, two in self.loader:
                loss = self.step(one, two)
                steps += 1
        took = time.perf_counter() - began
        print(f"loss {loss.item():.3f}; {steps} steps, {1000 * took / steps:.2f} ms each, {time.process_time() - cpu:.1f} s of CPU, {took:.2f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    Experiment(parser.parse_args().epochs).run()
