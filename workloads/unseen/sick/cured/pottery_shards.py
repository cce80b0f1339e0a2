# The program beside it, cured; the scans were once made as small as the photos and written like them.
"""Dates shards of pottery (four periods) from grey photos, PGM files of two kinds."""
import argparse
import os
import shutil
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, RandomSampler

SIDE, PERIODS = 64, 4


def shard_picture(rng, side, period):
    y, x = np.mgrid[0:side, 0:side] / side
    stripes = np.sin(2 * np.pi * (3 + 2 * period) * (x + rng.uniform(0.1, 0.4) * y))
    grain = rng.normal(0, 0.4, (side, side))
    return ((stripes + grain) * 45 + 128).clip(0, 255).astype(np.uint8)


def write_binary(path, picture):
    with open(path, "wb") as out:
        out.write(b"P5\n%d %d\n255\n" % picture.shape[::-1])
        out.write(picture.tobytes())


def fill_museum(folder, photos, scans, scan_side, seed):
    rng = np.random.default_rng(seed)
    entries = []
    for number in range(photos):
        period = number % PERIODS
        path = os.path.join(folder, f"shard{number:04d}.pgm")
        write_binary(path, shard_picture(rng, SIDE * 2, period))
        entries.append((path, period))
    for number in range(scans):
        period = number % PERIODS
        path = os.path.join(folder, f"museum{number:02d}.pgm")
        scan = shard_picture(rng, scan_side, period)
        step = scan_side // (SIDE * 2)
        cut = scan[:SIDE * 2 * step, :SIDE * 2 * step].reshape(SIDE * 2, step, SIDE * 2, step)
        write_binary(path, cut.mean((1, 3)).astype(np.uint8))
        entries.append((path, period))
    return entries


def read_pgm(path):
    with open(path, "rb") as handle:
        kind = handle.readline().strip()
        width, height = map(int, handle.readline().split())
        handle.readline()
        if kind == b"P5":
            flat = np.frombuffer(handle.read(), dtype=np.uint8)
        else:
            flat = np.array(list(map(int, handle.read().split())), dtype=np.uint8)
    return flat.reshape(height, width)


def shrink(picture):
    step = picture.shape[0] // SIDE
    cut = picture[:SIDE * step, :SIDE * step].reshape(SIDE, step, SIDE, step)
    return cut.mean((1, 3), dtype=np.float32) / 255.0 - 0.5


class Shards(Dataset):
    def __init__(self, entries):
        self.entries = entries

    def __len__(self):
        return len(self.entries)

    def __getitem__(self, index):
        path, period = self.entries[index]
        return torch.from_numpy(shrink(read_pgm(path))).unsqueeze(0), period


def build_network():
    def block(a, b):
        return [nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*block(1, 8), *block(8, 16), *block(16, 32),
                         nn.Flatten(), nn.Linear(32 * (SIDE // 8) ** 2, PERIODS))


def train(network, loader, lr):
    optimizer = torch.optim.Adam(network.parameters(), lr=lr)
    network.train()
    right = seen = 0
    for number, (pictures, periods) in enumerate(loader, 1):
        guess = network(pictures)
        loss = nn.functional.cross_entropy(guess, periods)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        right += int((guess.argmax(1) == periods).sum())
        seen += len(periods)
        if number % 30 == 0:
            print(f"{number} batches, {right / seen:.1%} dated rightly")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--photos", type=int, default=147)
    parser.add_argument("--scans", type=int, default=3)
    parser.add_argument("--scan-side", type=int, default=1200)
    parser.add_argument("--steps", type=int, default=160)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=41)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    folder = tempfile.mkdtemp(prefix="pottery_")
    try:
        entries = fill_museum(folder, options.photos, options.scans, options.scan_side, options.seed)
        dataset = Shards(entries)
        picks = RandomSampler(dataset, replacement=True, num_samples=options.steps * options.batch)
        loader = DataLoader(dataset, batch_size=options.batch, sampler=picks,
                            num_workers=options.workers)
        train(build_network(), loader, options.lr)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
