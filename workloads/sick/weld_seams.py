# truth: data_loading_bound
# about: the loop itself opens, reads and unpacks the 20 scans of every batch, one after the other on one core, and only then trains; nothing is read ahead while the other core is idle
# also: preprocessing_bound io_wait
# cure: cured/weld_seams.py
# whatif: workers=2
# needs: torch numpy
"""Finds pores and cracks in ultrasonic scans of weld seams. One packed file for every scan."""
import pathlib
import random
import tempfile
import time
import zlib

import numpy as np
import torch
from torch import nn

ROWS, COLUMNS, BATCH, EPOCHS, SCANS = 128, 1536, 20, 26, 140


def record(folder):
    rng = np.random.default_rng(5)
    labels = {}
    texture = rng.normal(0, 40, (ROWS, COLUMNS * 2)).cumsum(axis=1)
    for i in range(SCANS):
        label = i % 3
        start = int(rng.integers(0, COLUMNS))
        scan = (texture[:, start:start + COLUMNS] * rng.uniform(.8, 1.2)).astype(np.int16)
        for _ in range(label * 4):
            r, c = rng.integers(8, ROWS - 8), rng.integers(8, COLUMNS - 40)
            scan[r - 3:r + 3, c:c + (8 if label == 1 else 36)] += 3000
        path = folder / ("seam_%04d.scan" % i)
        path.write_bytes(zlib.compress(scan.tobytes(), 1))
        labels[path] = label
    return labels


def read_scan(path):
    with open(path, "rb") as file:
        packed = file.read()
    scan = np.frombuffer(zlib.decompress(packed), np.int16).reshape(ROWS, COLUMNS)
    peaks = scan[::2, ::8]
    return peaks.astype(np.float32) / 4096


class SeamNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 8, 5, stride=2, padding=2), nn.ReLU(),
            nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU())
        self.head = nn.Linear(32, 3)

    def forward(self, scans):
        return self.head(self.body(scans).amax(dim=(2, 3)))


def train(labels):
    random.seed(3)
    torch.manual_seed(3)
    model = SeamNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=.02, momentum=.9)
    paths, steps, last = sorted(labels), 0, 0.0
    began = time.perf_counter()
    for epoch in range(EPOCHS):
        random.shuffle(paths)
        for at in range(0, len(paths), BATCH):
            chosen = paths[at:at + BATCH]
            scans = torch.from_numpy(np.stack([read_scan(path) for path in chosen])).unsqueeze(1)
            wanted = torch.tensor([labels[path] for path in chosen])
            loss = nn.functional.cross_entropy(model(scans), wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            last = loss.item()
            steps += 1
    took = time.perf_counter() - began
    print("%d steps, last loss %.3f, %.1f ms per step" % (steps, last, took / steps * 1e3))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="seams-") as where:
        train(record(pathlib.Path(where)))
