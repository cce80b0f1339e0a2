# truth: batch_too_small
# about: batches of four rows, so what a step costs anyway (loader, operator calls, optimizer) is nearly all of it and the arithmetic nearly nothing
# cure: --batch 64
# whatif: batch=16
# gain: run
# needs: torch numpy
"""Estimates the density of kelp from soundings: depth, current, light, bottom, month."""
import argparse
import os
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

BOTTOMS, MONTHS = 9, 12


def sound(path, rows, seed):
    rng = np.random.default_rng(seed)
    table = np.zeros(rows, dtype=[("values", "f4", 6), ("bottom", "i4"), ("month", "i4"), ("density", "f4")])
    table["values"] = rng.normal(size=(rows, 6))
    table["bottom"] = rng.integers(BOTTOMS, size=rows)
    table["month"] = rng.integers(MONTHS, size=rows)
    table["density"] = (np.tanh(table["values"][:, 0] - table["values"][:, 1] ** 2)
                        + 0.3 * np.cos(table["month"] / 2) + 0.1 * table["bottom"] + rng.normal(0, 0.1, rows))
    table.tofile(path)
    return table.dtype


class Soundings(Dataset):
    def __init__(self, path, kind):
        table = np.fromfile(path, kind)
        self.values = torch.from_numpy(table["values"].copy())
        self.classes = torch.from_numpy(np.stack([table["bottom"], table["month"]], axis=1).astype(np.int64))
        self.density = torch.from_numpy(table["density"].copy())

    def __len__(self):
        return len(self.density)

    def __getitem__(self, number):
        return self.values[number], self.classes[number], self.density[number]


class Density(nn.Module):
    def __init__(self, width=64, depth=4):
        super().__init__()
        self.bottom = nn.Embedding(BOTTOMS, 8)
        self.month = nn.Embedding(MONTHS, 4)
        self.first = nn.Linear(6 + 8 + 4, width)
        self.layers = nn.ModuleList([nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.SiLU())
                                     for _ in range(depth)])
        self.last = nn.Linear(width, 1)

    def forward(self, values, classes):
        x = self.first(torch.cat([values, self.bottom(classes[:, 0]), self.month(classes[:, 1])], dim=1))
        for layer in self.layers:
            x = x + layer(x)
        return self.last(x).squeeze(1)


def fit(model, loader, epochs, rate):
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.7)
    for epoch in range(epochs):
        squares, rows = 0.0, 0
        for values, classes, density in loader:
            loss = nn.functional.mse_loss(model(values, classes), density)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            squares += loss.item() * len(density)
            rows += len(density)
        schedule.step()
        print(f"epoch {epoch + 1}: error {(squares / rows) ** 0.5:.4f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=8000)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=41)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    with tempfile.TemporaryDirectory(prefix="kelp") as folder:
        path = os.path.join(folder, "soundings.bin")
        kind = sound(path, args.rows, args.seed)
        loader = DataLoader(Soundings(path, kind), batch_size=args.batch, shuffle=True)
        fit(Density(), loader, args.epochs, args.rate)


if __name__ == "__main__":
    main()
