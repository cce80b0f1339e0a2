# truth: data_loading_bound
# about: every chip is one request to a remote store of 9 ms (a sleep stands for the request), and a single worker asks for them one after the other
# also: io_wait
# advice: num_workers
# cure: --workers 8
# whatif: workers=8
# needs: torch numpy
"""Dry river beds in satellite chips: water last winter or not, four bands."""
import argparse
import io
import time
import zlib

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIDE = 48


class Bucket:
    """The chip store: GET by key, answered by a server far away."""

    def __init__(self, chips, seed):
        rng = np.random.default_rng(seed)
        self.objects = {}
        for c in range(chips):
            wet = int(rng.integers(0, 2))
            chip = rng.integers(0, 40, (4, SIDE, SIDE), dtype=np.uint8)
            y = int(rng.integers(4, SIDE - 8))
            chip[:, y:y + 4] += np.uint8(60 if wet else 20)
            out = io.BytesIO()
            np.save(out, chip)
            self.objects[f"wadi/{c:05d}.npy.z"] = (zlib.compress(out.getvalue(), 1), wet)

    def keys(self):
        return sorted(self.objects)

    def get(self, key):
        time.sleep(0.009)
        return self.objects[key]


class Chips(Dataset):
    def __init__(self, bucket):
        self.bucket = bucket
        self.names = bucket.keys()

    def __len__(self):
        return len(self.names)

    def __getitem__(self, i):
        packed, wet = self.bucket.get(self.names[i])
        chip = np.load(io.BytesIO(zlib.decompress(packed)))
        return torch.from_numpy(chip).float() / 128.0, wet


def network():
    return nn.Sequential(
        nn.Conv2d(4, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * (SIDE // 4) ** 2, 2))


def run(args):
    torch.manual_seed(13)
    chips = Chips(Bucket(args.chips, seed=31))
    loader = DataLoader(chips, args.batch, shuffle=True, num_workers=args.workers)
    model = network()
    opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    hits = n = 0
    for x, wet in loader:
        guess = model(x)
        loss = nn.functional.cross_entropy(guess, wet)
        opt.zero_grad()
        loss.backward()
        opt.step()
        hits += int((guess.argmax(1) == wet).sum())
        n += len(wet)
    print(f"{n} chips, {hits / n:.3f} right")


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--workers", type=int, default=1)
    ap.add_argument("--batch", type=int, default=12)
    ap.add_argument("--chips", type=int, default=1080)
    run(ap.parse_args())
