# truth: none
# about: a convolutional network on pictures that are in memory; nearly all of the time is convolutions
# needs: torch numpy
"""Which loom wove this cloth: a small residual network on 32 x 32 swatches."""
import argparse
import os
import shutil
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

LOOMS = 5


def weave(path, count, seed):
    rng = np.random.default_rng(seed)
    loom = rng.integers(0, LOOMS, count)
    y, x = np.mgrid[0:32, 0:32]
    angle = (loom * 0.5 + rng.normal(0, 0.1, count))[:, None, None]
    threads = np.sin(np.cos(angle) * x + np.sin(angle) * y)
    cloth = threads[:, None] * rng.uniform(0.5, 1, (count, 3, 1, 1)) + rng.normal(0, 0.4, (count, 3, 32, 32))
    np.savez(path, cloth=cloth.astype(np.float32), loom=loom)


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x):
        return torch.relu(x + self.body(x))


def build(channels):
    return nn.Sequential(
        nn.Conv2d(3, channels, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(),
        Residual(channels), Residual(channels),
        nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1), nn.ReLU(),
        Residual(2 * channels), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2 * channels, LOOMS))


def train(model, loader, epochs, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9, weight_decay=1e-4)
    for epoch in range(epochs):
        losses = []
        for cloth, loom in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(cloth), loom)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        print(f"epoch {epoch}: {torch.stack(losses).mean().item():.4f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--swatches", type=int, default=1536)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--channels", type=int, default=48)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=2)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    folder = tempfile.mkdtemp(prefix="loom_")
    try:
        path = os.path.join(folder, "cloth.npz")
        weave(path, options.swatches, options.seed)
        with np.load(path) as data:
            swatches = TensorDataset(torch.from_numpy(data["cloth"]), torch.from_numpy(data["loom"]))
        model = build(options.channels)
        train(model, DataLoader(swatches, batch_size=options.batch, shuffle=True), options.epochs, options.lr)
        torch.save(model.state_dict(), os.path.join(folder, "looms.pt"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
