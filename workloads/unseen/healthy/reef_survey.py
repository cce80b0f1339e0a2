# truth: none
# about: one worker cuts and flips crops of reef photographs out of a mapped file well ahead of a convolutional network that needs much longer for a batch
# needs: torch numpy
"""Name the coral in crops of reef photographs."""
import os
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

PHOTOS, SIDE, CROP, CORALS = 160, 72, 64, 6


def dive(path):
    rng = np.random.default_rng(14)
    photos = np.lib.format.open_memmap(path, "w+", np.uint8, (PHOTOS, 3, SIDE, SIDE))
    for i in range(PHOTOS):
        coarse = rng.integers(0, 160, (3, 3 + i % CORALS, 3 + i % CORALS))
        tiles = -(-SIDE // coarse.shape[1])
        photos[i] = np.kron(coarse, np.ones((1, tiles, tiles)))[:, :SIDE, :SIDE]
        photos[i] += rng.integers(0, 90, (3, SIDE, SIDE), dtype=np.uint8)
    photos.flush()


class Crops(Dataset):
    def __init__(self, path, length):
        self.photos = np.load(path, mmap_mode="r")
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        number = int(rng.integers(PHOTOS))
        top, left = rng.integers(0, SIDE - CROP, 2)
        crop = self.photos[number, :, top:top + CROP, left:left + CROP]
        if rng.random() < 0.5:
            crop = crop[:, :, ::-1]
        return torch.from_numpy(crop.astype(np.float32)).div_(255.0), number % CORALS


def main():
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    torch.manual_seed(14)
    with tempfile.TemporaryDirectory(prefix="reef-") as folder:
        path = os.path.join(folder, "photos.npy")
        dive(path)
        loader = DataLoader(Crops(path, 65 * 32), batch_size=32, num_workers=1)
        model = nn.Sequential(
            nn.Conv2d(3, 32, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(),
            nn.Conv2d(64, 64, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(64, 96, 3, padding=1), nn.ReLU(),
            nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(96 * 16, CORALS))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        start, waited, steps = time.perf_counter(), 0.0, 0
        asked = start
        for crops, corals in loader:
            waited += time.perf_counter() - asked
            loss = nn.functional.cross_entropy(model(crops), corals)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
            if steps % 13 == 0:
                print("step %d loss %.3f" % (steps, loss.item()))
            asked = time.perf_counter()
        spent = time.perf_counter() - start
    print("%d steps, %.1f ms per step, %.1f of it waiting"
          % (steps, 1e3 * spent / steps, 1e3 * waited / steps))


if __name__ == "__main__":
    main()
