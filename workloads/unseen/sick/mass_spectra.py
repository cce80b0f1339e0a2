# truth: precision_unused
# about: the spectra come out of numpy as float64, and the network was made double to fit them, so every product of the training runs in double precision that the noisy labels cannot use
# cure: --dtype float32
# needs: torch numpy
"""Names the compound class of a mass spectrum: a small transformer over groups of m/z bins."""
import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

BINS, PATCH, CLASSES = 1536, 32, 12


class Spectra(Dataset):
    def __init__(self, count, dtype, seed):
        rng = np.random.default_rng(seed)
        peaks = rng.integers(0, BINS, (CLASSES, 30))
        self.label = rng.integers(0, CLASSES, count)
        x = np.abs(rng.normal(0, 0.05, (count, BINS)))
        rows = np.arange(count)[:, None]
        x[rows, peaks[self.label]] += rng.uniform(0.1, 1.0, (count, 30))
        self.x = (x / x.max(1, keepdims=True)).astype(dtype)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.label[i]


class SpectrumFormer(nn.Module):
    def __init__(self, width=128, layers=2):
        super().__init__()
        self.embed = nn.Linear(PATCH, width)
        self.place = nn.Parameter(0.02 * torch.randn(BINS // PATCH, width))
        layer = nn.TransformerEncoderLayer(width, 4, 384, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, layers)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x):
        x = self.embed(x.unflatten(1, (BINS // PATCH, PATCH))) + self.place
        return self.head(self.layers(x).mean(1))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--dtype", default="float64", choices=["float64", "float32"])
    p.add_argument("--epochs", type=int, default=3)
    args = p.parse_args()
    torch.manual_seed(1)
    data = Spectra(1120, args.dtype, 1)
    loader = DataLoader(data, batch_size=32, shuffle=True, drop_last=True)
    model = SpectrumFormer().to(getattr(torch, args.dtype))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    began, steps = time.perf_counter(), 0
    for epoch in range(args.epochs):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
        print(f"epoch {epoch + 1} loss {loss.item():.3f}")
    took = time.perf_counter() - began
    print(f"{steps} steps, {1000 * took / steps:.1f} ms a step")


if __name__ == "__main__":
    main()
