# truth: none
# about: two workers unpack and turn the pictures on the second core while the first computes, and they are always ahead of it
# env: OMP_NUM_THREADS=1
# needs: torch numpy cores:2
"""Sorts stones of a quarry by picture. Each picture is a zlib-packed file."""
import argparse
import pathlib
import tempfile
import zlib

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIDE, CROP, STONES = 176, 160, 6


def photograph(folder, count, seed):
    rng = np.random.default_rng(seed)
    rows, cols = np.mgrid[0:SIDE, 0:SIDE].astype(np.float32)
    grain = rng.integers(0, 12, (3, SIDE, SIDE), dtype=np.uint8)
    for number in range(count):
        kind = number % STONES
        veins = 90 + 60 * np.sin(rows / (2 + kind) + cols / 9 + rng.uniform(0, 6))
        picture = veins.astype(np.uint8) + np.roll(grain, int(rng.integers(SIDE)), axis=1)
        (folder / f"{kind}_{number:04}.z").write_bytes(zlib.compress(picture.tobytes(), 1))


class Stones(Dataset):
    def __init__(self, folder):
        self.files = sorted(folder.glob("*.z"))

    def __len__(self):
        return len(self.files)

    def __getitem__(self, number):
        path = self.files[number]
        picture = np.frombuffer(zlib.decompress(path.read_bytes()), np.uint8).reshape(3, SIDE, SIDE)
        top, left = torch.randint(0, SIDE - CROP, (2,)).tolist()
        picture = picture[:, top:top + CROP, left:left + CROP]
        if torch.rand(()) < 0.5:
            picture = picture[:, :, ::-1]
        picture = torch.from_numpy(picture.astype(np.float32) * (1 / 128) - 1.0)
        return nn.functional.avg_pool2d(picture, 2), int(path.name[0])


def build(width):
    return nn.Sequential(
        nn.Conv2d(3, width, 3, stride=2, padding=1), nn.ReLU(),
        nn.Conv2d(width, 2 * width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(2 * width, 4 * width, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * width, STONES))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stones", type=int, default=480)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=9)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()

    torch.manual_seed(43)
    torch.set_num_threads(1)  # the other core is for the workers
    with tempfile.TemporaryDirectory(prefix="quarry") as name:
        folder = pathlib.Path(name)
        photograph(folder, args.stones, seed=43)
        loader = DataLoader(Stones(folder), batch_size=args.batch, shuffle=True, num_workers=args.workers,
                            persistent_workers=args.workers > 0)
        model = build(args.width)
        optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
        for epoch in range(args.epochs):
            right = 0
            for pictures, kinds in loader:
                scores = model(pictures)
                loss = nn.functional.cross_entropy(scores, kinds)
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
                right += int((scores.argmax(1) == kinds).sum())
            print(f"epoch {epoch}: {right / args.stones:.1%}")


if __name__ == "__main__":
    main()
