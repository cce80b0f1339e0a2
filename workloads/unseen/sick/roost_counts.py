# truth: data_loading_bound
# about: every recording is one request to an object store that answers after 6 to 10 ms (a sleep in the place of the request), and the loader has only two workers, so sixteen requests of a batch wait in two queues while the network idles
# also: io_wait
# advice: num_workers
# cure: --workers 8
# whatif: workers=8
# env: OMP_NUM_THREADS=1
# needs: torch numpy
"""Counts how many bats leave a roost, from the energy bands of thermal and ultrasonic recorders."""
import argparse
import io
import pathlib
import random
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

FRAMES, BANDS = 96, 40


class Bucket:
    """The survey's bucket. Objects lie in a local folder here; a GET waits as long as it does from the field office."""

    def __init__(self, root, seed=11):
        self.root = pathlib.Path(root)
        self.jitter = random.Random(seed)

    def put(self, key, body):
        (self.root / key).write_bytes(body)

    def get(self, key):
        time.sleep(self.jitter.uniform(0.006, 0.010))
        return (self.root / key).read_bytes()


def fill(bucket, nights):
    rng = np.random.default_rng(3)
    keys = []
    for night in range(nights):
        bats = rng.poisson(6)
        bands = rng.gamma(1.0, 0.3, size=(FRAMES, BANDS)).astype(np.float32)
        for _ in range(bats):
            start, band = rng.integers(0, FRAMES - 8), rng.integers(4, BANDS - 4)
            bands[start:start + 8, band - 2:band + 3] += 2.0
        body = io.BytesIO()
        np.savez(body, bands=bands, bats=bats)
        key = f"night-{night:05d}.npz"
        bucket.put(key, body.getvalue())
        keys.append(key)
    return keys


class Nights(Dataset):
    def __init__(self, bucket, keys):
        self.bucket, self.keys = bucket, keys

    def __len__(self):
        return len(self.keys)

    def __getitem__(self, index):
        with np.load(io.BytesIO(self.bucket.get(self.keys[index]))) as night:
            bands = torch.from_numpy(night["bands"])
            return bands.log1p().unsqueeze(0), torch.tensor(float(night["bats"]))


def build():
    return nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(12, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(24, 24, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(4),
        nn.Flatten(), nn.Linear(24 * 16, 1))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--epochs", type=int, default=2)
    args = p.parse_args()
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as root:
        bucket = Bucket(root)
        nights = Nights(bucket, fill(bucket, 960))
        loader = DataLoader(nights, batch_size=16, shuffle=True, num_workers=args.workers, persistent_workers=True)
        model = build()
        optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
        lossfn = nn.PoissonNLLLoss()
        for epoch in range(args.epochs):
            total = 0.0
            for bands, bats in loader:
                loss = lossfn(model(bands).squeeze(1), bats)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.item()
            print(f"epoch {epoch}: nll {total / len(loader):.3f}")


if __name__ == "__main__":
    main()
