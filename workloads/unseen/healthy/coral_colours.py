# truth: none
# about: one worker prepares the pictures on the second core in a fraction of the time that a step computes, so the steps never wait
# needs: torch numpy cores:2
"""Bleached or alive: coral pictures, turned and brightened at random, a small network."""
import argparse
import os
import shutil
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def dive(path, count, seed):
    rng = np.random.default_rng(seed)
    pale = rng.integers(0, 2, count)
    pictures = rng.integers(0, 90, (count, 144, 144, 3), dtype=np.uint8)
    pictures[..., 0] += (60 + 40 * pale).astype(np.uint8)[:, None, None]
    pictures[..., 1] += (20 + 60 * pale).astype(np.uint8)[:, None, None]
    pictures[..., 2] += (40 + 50 * pale).astype(np.uint8)[:, None, None]
    doubtful = rng.random(count) < 0.15
    np.savez(path, pictures=pictures, pale=np.where(doubtful, 1 - pale, pale))


class Augment:
    def __init__(self, side):
        self.side = side

    def __call__(self, picture):
        room = picture.shape[0] - self.side
        top, left, turn, flip = torch.randint(0, 1 << 20, (4,)).tolist()
        top, left = top % (room + 1), left % (room + 1)
        picture = picture[top:top + self.side, left:left + self.side]
        picture = np.rot90(picture, turn % 4)
        if flip % 2:
            picture = picture[:, ::-1]
        bright = 0.8 + 0.4 * torch.rand(()).item()
        picture = picture.astype(np.float32) * np.float32(bright / 255.0)
        picture -= np.float32(0.45)
        picture /= picture.std() + np.float32(1e-3)
        return torch.from_numpy(np.ascontiguousarray(picture.transpose(2, 0, 1)))


class Reef(Dataset):
    def __init__(self, path, transform):
        with np.load(path) as data:
            self.pictures = data["pictures"]
            self.pale = data["pale"]
        self.transform = transform

    def __len__(self):
        return len(self.pale)

    def __getitem__(self, index):
        return self.transform(self.pictures[index]), int(self.pale[index])


def build():
    return nn.Sequential(
        nn.Conv2d(3, 32, 7, stride=4, padding=3), nn.ReLU(),
        nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.ReLU(),
        nn.Conv2d(64, 96, 3, padding=1), nn.ReLU(),
        nn.Conv2d(96, 96, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(96, 2))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=int, default=792)
    parser.add_argument("--batch", type=int, default=24)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=90)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="coral_")
    try:
        path = os.path.join(folder, "reef.npz")
        dive(path, options.pictures, options.seed)
        loader = DataLoader(Reef(path, Augment(128)), batch_size=options.batch, shuffle=True,
                            num_workers=options.workers, persistent_workers=options.workers > 0)
        model = build()
        optimizer = torch.optim.Adam(model.parameters(), lr=options.lr)
        for epoch in range(options.epochs):
            total = 0.0
            for pictures, pale in loader:
                loss = nn.functional.cross_entropy(model(pictures), pale)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += float(loss.detach())
            print(f"epoch {epoch}: {total / len(loader):.4f}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
