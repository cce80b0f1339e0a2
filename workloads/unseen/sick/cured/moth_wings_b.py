# The program beside it, cured; the rows of a weight are scaled and updated together.
"""Variational autoencoder for the patterns on moths' wings."""
import argparse
import os
import shutil
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIDE = 24
PIXELS = SIDE * SIDE


def photograph(path, moths, seed):
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:SIDE, 0:SIDE] / SIDE - 0.5
    spots = rng.uniform(0.05, 0.3, (moths, 1, 1))
    bands = rng.uniform(4, 14, (moths, 1, 1))
    wing = np.exp(-(x ** 2 + y ** 2) / spots) * (0.6 + 0.4 * np.cos(bands * 6.28 * y))
    np.save(path, (wing * 255).astype(np.uint8).reshape(moths, PIXELS))


class Wings(Dataset):
    def __init__(self, path):
        self.pixels = np.load(path, mmap_mode="r")

    def __len__(self):
        return len(self.pixels)

    def __getitem__(self, index):
        return torch.from_numpy(self.pixels[index].astype(np.float32) / 255.0)


class RowwiseMomentum(torch.optim.Optimizer):
    """Momentum where each unit's step has a length of its own (its weight's length times lr)."""

    def __init__(self, params, lr=0.01, momentum=0.9):
        super().__init__(params, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                state = self.state[weight]
                if not state:
                    state["speed"] = torch.zeros_like(weight)
                if weight.dim() == 2:
                    self.update_rows(weight, weight.grad, state["speed"], group)
                else:
                    state["speed"].mul_(group["momentum"]).add_(weight.grad)
                    weight.add_(state["speed"], alpha=-group["lr"])

    def update_rows(self, weight, grad, speed, group):
        speed.mul_(group["momentum"]).add_(grad)
        trust = weight.norm(dim=1, keepdim=True) / (speed.norm(dim=1, keepdim=True) + 1e-6)
        weight.sub_(speed * (group["lr"] * trust.clamp(max=10.0)))


class WingVAE(nn.Module):
    def __init__(self, width, code):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(PIXELS, width), nn.ReLU(),
                                     nn.Linear(width, width), nn.ReLU())
        self.mean = nn.Linear(width, code)
        self.spread = nn.Linear(width, code)
        self.decoder = nn.Sequential(nn.Linear(code, width), nn.ReLU(), nn.Linear(width, width),
                                     nn.ReLU(), nn.Linear(width, PIXELS))

    def forward(self, x):
        hidden = self.encoder(x)
        mean, spread = self.mean(hidden), self.spread(hidden).clamp(-6, 4)
        code = mean + torch.randn_like(mean) * (0.5 * spread).exp()
        picture = self.decoder(code)
        rebuilt = nn.functional.binary_cross_entropy_with_logits(picture, x, reduction="sum")
        prior = -0.5 * (1 + spread - mean.square() - spread.exp()).sum()
        return (rebuilt + prior) / len(x)


def fit(model, loader, optimizer, epochs):
    for epoch in range(epochs):
        total = torch.zeros(())
        for wings in loader:
            optimizer.zero_grad()
            loss = model(wings)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(f"epoch {epoch}: {total.item() / len(loader):.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moths", type=int, default=3840)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--code", type=int, default=24)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--lr", type=float, default=0.002)
    parser.add_argument("--seed", type=int, default=31)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    folder = tempfile.mkdtemp(prefix="moth_")
    try:
        path = os.path.join(folder, "wings.npy")
        photograph(path, options.moths, options.seed)
        loader = DataLoader(Wings(path), batch_size=options.batch, shuffle=True, drop_last=True)
        model = WingVAE(options.width, options.code)
        fit(model, loader, RowwiseMomentum(model.parameters(), lr=options.lr), options.epochs)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
