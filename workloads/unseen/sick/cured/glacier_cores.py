# The program beside it, cured; a piece is one read.
"""Denoising autoencoder for pieces of drilled ice cores."""
import argparse
import os
import shutil
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

LAYERS, FIELDS = 160, 5
PIECE = LAYERS * FIELDS


def drill(folder, cores, pieces, seed):
    rng = np.random.default_rng(seed)
    paths = []
    for number in range(cores):
        path = os.path.join(folder, f"core{number:02d}.dat")
        walk = rng.normal(0, 1, (pieces * LAYERS, FIELDS)).cumsum(0)
        season = np.sin(np.arange(pieces * LAYERS) / 6.0)[:, None]
        values = (walk - walk.mean(0)) / walk.std(0) + 0.3 * season
        values.astype("<f4").tofile(path)
        paths.append(path)
    return paths


class CoreFile:
    """A core as the drill's logger writes it: layer after layer, five floats each."""

    def __init__(self, path):
        self.path = path
        self.handle = None

    def piece(self, number):
        if self.handle is None:
            self.handle = open(self.path, "rb", buffering=0)
        self.handle.seek(number * PIECE * 4)
        layers = np.frombuffer(self.handle.read(PIECE * 4), dtype="<f4")
        return layers.reshape(LAYERS, FIELDS).copy()

    def close(self):
        if self.handle is not None:
            self.handle.close()
            self.handle = None


class Pieces(Dataset):
    def __init__(self, paths, per_core):
        self.cores = [CoreFile(path) for path in paths]
        self.per_core = per_core

    def __len__(self):
        return len(self.cores) * self.per_core

    def __getitem__(self, index):
        core, number = divmod(index, self.per_core)
        return torch.from_numpy(self.cores[core].piece(number).reshape(-1))

    def close(self):
        for core in self.cores:
            core.close()


class Denoiser(nn.Module):
    def __init__(self, width, code):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(PIECE, width), nn.GELU(), nn.Linear(width, width),
                                    nn.GELU(), nn.Linear(width, code))
        self.decode = nn.Sequential(nn.Linear(code, width), nn.GELU(), nn.Linear(width, PIECE))

    def forward(self, x):
        return self.decode(self.encode(x))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cores", type=int, default=8)
    parser.add_argument("--pieces", type=int, default=160)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--width", type=int, default=640)
    parser.add_argument("--noise", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=77)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    folder = tempfile.mkdtemp(prefix="glacier_")
    try:
        dataset = Pieces(drill(folder, options.cores, options.pieces, options.seed), options.pieces)
        loader = DataLoader(dataset, batch_size=options.batch, shuffle=True, drop_last=True)
        model = Denoiser(options.width, 32)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        for epoch in range(options.epochs):
            total = 0.0
            for clean in loader:
                restored = model(clean + options.noise * torch.randn_like(clean))
                loss = (restored - clean).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.item()
            print(f"epoch {epoch}: error {total / len(loader):.4f}")
        dataset.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
