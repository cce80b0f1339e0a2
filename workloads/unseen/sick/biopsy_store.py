# truth: data_loading_bound
# about: each tissue patch is one request to the hospital's image store (5 ms, a sleep stands for the way there and back), and the loader has no workers, so the requests of a batch come one after the other while the cores idle
# also: io_wait
# advice: num_workers
# whatif: workers=6
# cure: --workers 6
# env: OPENBLAS_NUM_THREADS=1
# needs: torch numpy
"""Mitosis or not, in patches of biopsies that lie in the hospital's image store."""
import argparse
import os
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIDE = 40


class ImageStore:
    """the store's client: ranges of one object"""

    def __init__(self, path):
        self.path = path
        self.handle = None

    def get_range(self, first, count):
        if self.handle is None:
            self.handle = os.open(self.path, os.O_RDONLY)
        time.sleep(0.005)
        return os.pread(self.handle, count, first)


class Patches(Dataset):
    def __init__(self, store, labels):
        self.store, self.labels = store, labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        size = 3 * SIDE * SIDE
        raw = np.frombuffer(self.store.get_range(i * size, size), np.uint8).reshape(3, SIDE, SIDE)
        return torch.from_numpy(raw / np.float32(255)), self.labels[i]


def fill(path, labels, seed):
    rng = np.random.default_rng(seed)
    with open(path, "wb") as f:
        for label in labels:
            patch = rng.integers(90, 220, (3, SIDE, SIDE), dtype=np.uint8)
            if label:
                patch[:, 15:25, 15:25] //= 2
            f.write(patch.tobytes())


def network():
    def block(i, o):
        return [nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*block(3, 16), *block(16, 32), *block(32, 32), nn.Flatten(), nn.Linear(32 * 25, 2))


def main(workers, steps):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    labels = np.random.default_rng(1).integers(0, 2, steps * 16).tolist()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "biopsies.raw")
        fill(path, labels, 2)
        loader = DataLoader(Patches(ImageStore(path), labels), batch_size=16, shuffle=True, num_workers=workers, drop_last=True)
        model = network()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        right = []
        for patches, truth in loader:
            scores = model(patches)
            optimizer.zero_grad()
            nn.functional.cross_entropy(scores, truth).backward()
            optimizer.step()
            right.append((scores.argmax(1) == truth).float().mean().item())
        print(f"first ten batches {np.mean(right[:10]):.3f}, last ten {np.mean(right[-10:]):.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--steps", type=int, default=90)
    args = parser.parse_args()
    main(args.workers, args.steps)
