# truth: checkpoint_stall
# about: every fifth step the state of model and optimizer is packed with gzip, written and synced to disk before training goes on
# cure: --keep-every 40
# whatif: checkpoint=8
# needs: torch numpy
"""Learns to repair faults in woven patterns (a denoising autoencoder).

The loom's controller may lose power, so states of the training are kept on disk, the last two.
"""
import argparse
import collections
import gzip
import os
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIDE = 32


def weave(path, cloths, seed):
    rng = np.random.default_rng(seed)
    rows, cols = np.mgrid[0:SIDE, 0:SIDE]
    patterns = np.empty((cloths, SIDE * SIDE), np.uint8)
    for number in range(cloths):
        over, shift = rng.integers(2, 7), rng.integers(1, 5)
        patterns[number] = ((cols + shift * rows) % (2 * over) < over).ravel()
    np.save(path, np.packbits(patterns, axis=1))


class Cloths(Dataset):
    def __init__(self, path, faults, seed):
        self.patterns = np.load(path)
        self.faults = faults
        self.seed = seed

    def __len__(self):
        return len(self.patterns)

    def __getitem__(self, number):
        clean = np.unpackbits(self.patterns[number]).astype(np.float32)
        rng = np.random.default_rng((self.seed, number))
        broken = np.where(rng.random(clean.shape, dtype=np.float32) < self.faults, 1 - clean, clean)
        return torch.from_numpy(broken), torch.from_numpy(clean)


class Mender(nn.Module):
    def __init__(self, width):
        super().__init__()
        size = SIDE * SIDE
        self.encode = nn.Sequential(nn.Linear(size, width), nn.ReLU(), nn.Linear(width, width // 4), nn.ReLU())
        self.decode = nn.Sequential(nn.Linear(width // 4, width), nn.ReLU(), nn.Linear(width, size))

    def forward(self, broken):
        return self.decode(self.encode(broken))


class Keeper:
    """Keeps the last states of a training, safe against loss of power."""

    def __init__(self, folder, last=2):
        self.folder = folder
        self.kept = collections.deque()
        self.last = last

    def keep(self, step, model, optimizer):
        path = os.path.join(self.folder, f"state{step:05}.pt.gz")
        with open(path + ".part", "wb") as raw:
            with gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=1) as packed:
                torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, packed)
            raw.flush()
            os.fsync(raw.fileno())
        os.replace(path + ".part", path)
        self.kept.append(path)
        if len(self.kept) > self.last:
            os.remove(self.kept.popleft())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cloths", type=int, default=5120)
    parser.add_argument("--faults", type=float, default=0.1)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--keep-every", type=int, default=5)
    args = parser.parse_args()

    torch.manual_seed(3)
    with tempfile.TemporaryDirectory(prefix="looms") as folder:
        path = os.path.join(folder, "patterns.npy")
        weave(path, args.cloths, seed=3)
        loader = DataLoader(Cloths(path, args.faults, seed=3), batch_size=args.batch, shuffle=True)
        model = Mender(args.width)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        keeper = Keeper(folder)
        step = 0
        for epoch in range(args.epochs):
            for broken, clean in loader:
                loss = nn.functional.binary_cross_entropy_with_logits(model(broken), clean)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                step += 1
                if step % args.keep_every == 0:
                    keeper.keep(step, model, optimizer)
            print(f"epoch {epoch}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
