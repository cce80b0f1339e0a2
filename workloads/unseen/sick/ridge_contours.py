# truth: slow_samples
# about: the shape descriptor compares every point of a contour line with every other; two lines in a hundred were digitised with thousands of points instead of dozens and take hundreds of times as long as the rest, and the batches behind them wait for their turn
# also: preprocessing_bound data_loading_bound
# cure: cured/ridge_contours.py
# env: OMP_NUM_THREADS=1
# needs: torch numpy
"""Which landform does a contour line belong to?

Lines come from old map sheets. A line is described by the distribution of the
distances between its points (D2), at three scales, and by its outline.
"""
import sys

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

FORMS = ("drumlin", "esker", "cirque", "karst")
BINS = 64


def digitise(rng, form, points):
    t = np.sort(rng.uniform(0, 2 * np.pi, points))
    wobble = 0.08 * np.sin(9 * t + rng.uniform(0, 6))
    stretch = (1.8, 4.0, 1.2, 1.0)[form]
    radius = 1 + wobble + (0.35 * np.cos(3 * t) if form == 3 else 0) + (0.4 * np.cos(t) if form == 2 else 0)
    return np.stack([stretch * radius * np.cos(t), radius * np.sin(t)], 1) * rng.uniform(0.6, 1.5)


def load_sheet(lines, seed):
    rng = np.random.default_rng(seed)
    forms = rng.integers(0, len(FORMS), lines)
    points = rng.integers(50, 90, lines)
    points[rng.permutation(lines)[:lines // 50]] = 3000   # the sheets scanned by machine
    return [digitise(rng, f, n) for f, n in zip(forms, points)], forms


def shape_distribution(line):
    counts = np.zeros(BINS)
    extent = np.hypot(*(line.max(0) - line.min(0)))
    for here in line:
        away = np.hypot(line[:, 0] - here[0], line[:, 1] - here[1])
        counts += np.bincount((away / extent * (BINS - 1)).astype(np.intp), minlength=BINS)
    return np.sqrt(counts / len(line) ** 2)


class ContourLines(Dataset):
    def __init__(self, lines, forms):
        self.lines, self.forms = lines, forms

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, i):
        line = self.lines[i]
        histogram = shape_distribution(line)
        at = np.linspace(0, len(line) - 1, 96).astype(int)
        outline = (line[at] - line.mean(0)).T
        return histogram.astype(np.float32), outline.astype(np.float32), self.forms[i]


class FormNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.shape = nn.Sequential(nn.Linear(BINS, 256), nn.GELU(), nn.Linear(256, 256), nn.GELU())
        self.outline = nn.Sequential(nn.Conv1d(2, 48, 7, padding=3), nn.GELU(), nn.Conv1d(48, 64, 5, padding=2),
                                     nn.GELU(), nn.Conv1d(64, 64, 5, padding=2), nn.GELU(), nn.AdaptiveAvgPool1d(1), nn.Flatten())
        self.vote = nn.Linear(256 + 64, len(FORMS))

    def forward(self, histogram, outline):
        return self.vote(torch.cat([self.shape(histogram), self.outline(outline)], 1))


if __name__ == "__main__":
    torch.manual_seed(13)
    sheet = ContourLines(*load_sheet(2400, seed=13))
    loader = DataLoader(sheet, batch_size=12, shuffle=True, num_workers=2)
    net = FormNet()
    optimizer = torch.optim.RMSprop(net.parameters(), lr=3e-4)
    right = 0
    for histogram, outline, form in loader:
        votes = net(histogram, outline)
        loss = nn.functional.cross_entropy(votes, form)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right += int((votes.argmax(1) == form).sum())
    sys.stdout.write(f"{right} of {len(sheet)} lines named rightly while learning, last loss {loss.item():.3f}\n")
