# truth: data_loading_bound
# about: every cutout is asked from a remote archive that answers after 4 ms (the sleep stands for that request), and the loader has no workers, so the requests of a batch come one after the other while a core is idle
# also: io_wait
# advice: num_workers
# cure: --workers 4
# whatif: workers=4
# needs: torch numpy
"""Sorts galaxies into spirals, ellipticals and mergers from survey cutouts kept in an archive."""
import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIDE = 40


class Archive:
    """The survey's object store. An object comes back one round trip after it is asked for."""

    def __init__(self, objects, seed):
        rng = np.random.default_rng(seed)
        yy, xx = np.mgrid[-1:1:SIDE * 1j, -1:1:SIDE * 1j]
        self.blobs, self.kinds = {}, rng.integers(0, 3, objects)
        for i, kind in enumerate(self.kinds):
            radius, angle = np.hypot(xx, yy), np.arctan2(yy, xx)
            light = np.exp(-radius * rng.uniform(3, 6))
            if kind == 0:
                light *= 1 + np.cos(2 * angle + 7 * radius)
            elif kind == 2:
                light += np.exp(-np.hypot(xx - 0.4, yy + rng.uniform(-.4, .4)) * 5)
            frame = np.stack([light * c for c in (1.0, .8, .6)]) + rng.normal(0, .03, (3, SIDE, SIDE))
            self.blobs["cutout/%06d" % i] = (np.clip(frame, 0, 2) * 120).astype(np.uint8).tobytes()

    def get(self, key):
        time.sleep(0.004)  # the round trip to the archive
        return self.blobs[key]


class Cutouts(Dataset):
    def __init__(self, archive):
        self.archive = archive

    def __len__(self):
        return len(self.archive.kinds)

    def __getitem__(self, i):
        raw = np.frombuffer(self.archive.get("cutout/%06d" % i), np.uint8)
        image = torch.from_numpy(raw.reshape(3, SIDE, SIDE).astype(np.float32))
        return image.div_(120), int(self.archive.kinds[i])


def network():
    return nn.Sequential(
        nn.Conv2d(3, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(24, 48, 3, padding=1), nn.BatchNorm2d(48), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(48, 64, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(64, 3))


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--workers", type=int, default=0)
    options = options.parse_args()
    torch.manual_seed(11)
    cutouts = Cutouts(Archive(1440, seed=11))
    loader = DataLoader(cutouts, batch_size=12, shuffle=True, num_workers=options.workers, drop_last=True)
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    loss_of = nn.CrossEntropyLoss()
    began, seen, total = time.perf_counter(), 0, 0.0
    for images, kinds in loader:
        optimizer.zero_grad()
        loss = loss_of(model(images), kinds)
        loss.backward()
        optimizer.step()
        total += loss.item()
        seen += 1
    took = time.perf_counter() - began
    print("%d steps, mean loss %.3f, %.1f ms per step" % (seen, total / seen, took / seen * 1e3))


if __name__ == "__main__":
    main()
