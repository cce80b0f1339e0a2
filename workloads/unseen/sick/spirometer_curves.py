# truth: preprocessing_bound
# about: two workers keep both cores busy with a running median that is computed point by point, with a call of np.median for every point; the training waits for them, and only a cheaper filter (the same median over windows in numpy) would help
# also: data_loading_bound cpu_saturated
# whatif: transform=74
# cure: cured/spirometer_curves.py
# env: OPENBLAS_NUM_THREADS=1
# needs: torch numpy cores:2
"""Grades the flow of a forced breath (obstructive, restrictive, normal, repeat the test)."""
import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

POINTS, HALF = 640, 20


def baseline(flow):
    """running median, the ends repeated"""
    x = np.pad(flow, HALF, mode="edge")
    out = np.empty_like(flow)
    for i in range(len(flow)):
        out[i] = np.median(x[i:i + 2 * HALF + 1])
    return out


def clean(flow):
    slow = baseline(flow)
    rest = flow - slow
    return np.stack([slow, rest / (rest.std() + 1e-6)])


class Breaths(Dataset):
    def __init__(self, count, transform, seed=8):
        rng = np.random.default_rng(seed)
        t = np.linspace(0, 6, POINTS, dtype=np.float32)
        self.grade = rng.integers(0, 4, count)
        peak = rng.uniform(4, 9, (count, 1)).astype(np.float32)
        fall = (0.4 + 0.5 * self.grade[:, None]).astype(np.float32)
        self.flow = peak * t * 6 * np.exp(-t / fall) + rng.normal(0, 0.15, (count, POINTS)).astype(np.float32)
        self.transform = transform

    def __len__(self):
        return len(self.grade)

    def __getitem__(self, i):
        return torch.from_numpy(self.transform(self.flow[i])), int(self.grade[i])


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(width, width, 5, padding=2), nn.BatchNorm1d(width), nn.ReLU())

    def forward(self, x):
        return x + self.conv(x)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=100)
    a = p.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Conv1d(2, 16, 9, stride=2), Residual(16), nn.AvgPool1d(4), Residual(16),
                          nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(16, 4))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    loader = DataLoader(Breaths(a.steps * 16, clean), batch_size=16, shuffle=True, num_workers=2)
    right = total = 0
    for step, (flow, grade) in enumerate(loader):
        scores = model(flow)
        loss = nn.functional.cross_entropy(scores, grade)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right += (scores.argmax(1) == grade).sum().item()
        total += len(grade)
    print(f"{right / total:.3f} of the breaths graded as the physician did")


if __name__ == "__main__":
    main()
