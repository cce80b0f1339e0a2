# truth: oversubscribed
# about: the number of torch threads was copied from a big node, so a dozen threads fight over the few cores here and meet at a barrier after every small operator
# cure: --threads 2
# whatif: threads=2
# needs: torch numpy cores:2
"""Finds flat spots on tram wheels in pictures of the running surface.

The depot's camera gives strips; they are kept in one .npy file that is mapped into memory.
"""
import argparse
import os
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

HEIGHT, WIDTH = 32, 64


def photograph(path, strips, seed):
    rng = np.random.default_rng(seed)
    pictures = rng.integers(90, 140, size=(strips, 1, HEIGHT, WIDTH), dtype=np.uint8)
    flat = rng.random(strips) < 0.4
    for number in np.flatnonzero(flat):
        top, left = rng.integers(0, HEIGHT - 8), rng.integers(0, WIDTH - 14)
        pictures[number, 0, top:top + 8, left:left + 14] += 60
    np.save(os.path.join(path, "strips.npy"), pictures)
    np.save(os.path.join(path, "flat.npy"), flat.astype(np.int64))


class Strips(Dataset):
    def __init__(self, path):
        self.pictures = np.load(os.path.join(path, "strips.npy"), mmap_mode="r")
        self.flat = np.load(os.path.join(path, "flat.npy"))

    def __len__(self):
        return len(self.flat)

    def __getitem__(self, number):
        picture = torch.from_numpy(self.pictures[number].astype(np.float32))
        return picture.sub_(115.0).div_(20.0), int(self.flat[number])


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.second = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x):
        return torch.relu(x + self.second(torch.relu(self.norm(self.first(x)))))


def build(width):
    return nn.Sequential(nn.Conv2d(1, width, 3, stride=2, padding=1), nn.ReLU(), Block(width), Block(width),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 2))


class Trainer:
    def __init__(self, model, rate):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9, weight_decay=1e-4)
        self.criterion = nn.CrossEntropyLoss()

    def step(self, pictures, flat):
        self.optimizer.zero_grad()
        loss = self.criterion(self.model(pictures), flat)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            losses = [self.step(pictures, flat) for pictures, flat in loader]
            print(f"pass {epoch + 1} of {epochs}, loss {sum(losses) / len(losses):.4f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--strips", type=int, default=1152)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--width", type=int, default=24)
    parser.add_argument("--passes", type=int, default=2)
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--threads", type=int, default=12)
    args = parser.parse_args()

    torch.manual_seed(31)
    torch.set_num_threads(args.threads)
    with tempfile.TemporaryDirectory(prefix="trams") as path:
        photograph(path, args.strips, seed=31)
        loader = DataLoader(Strips(path), batch_size=args.batch, shuffle=True)
        Trainer(build(args.width), args.rate).fit(loader, args.passes)


if __name__ == "__main__":
    main()
