# truth: metadata_bound
# about: an hour of one bed is a folder with a file of a few hundred bytes for every sensor, and each is looked for under three names, tested and opened anew in every epoch: listing, stat and open cost far more than the bytes
# also: data_loading_bound small_reads
# cure: cured/greenhouse_beds.py
# needs: torch numpy
"""Forecast the water that a greenhouse bed will need from the sensors of its last hour."""
import os
import pathlib
import random
import shutil
import tempfile
import time

import numpy as np
import torch
from torch import nn

SENSORS, READINGS, HOURS, EPOCHS, BATCH = 40, 60, 120, 66, 40


def record(root):
    """The loggers' own layout: root/bed/hour/sensor.raw, 60 readings each; a corrected file goes first."""
    rng = np.random.default_rng(33)
    targets = {}
    for number in range(HOURS):
        bed, hour = divmod(number, 30)
        folder = root / ("bed%02d" % bed) / ("hour%03d" % hour)
        folder.mkdir(parents=True)
        level = rng.uniform(0, 1)
        for sensor in range(SENSORS):
            values = (level + 0.1 * rng.normal(size=READINGS)).astype(np.float32)
            (folder / ("s%02d.raw" % sensor)).write_bytes(values.tobytes())
        targets[folder] = level
    return targets


class Hours:
    def __init__(self, root, targets):
        self.targets = targets
        self.folders = sorted(targets)

    def read(self, folder):
        rows = []
        for name in sorted(os.listdir(folder)):
            sensor = name.split(".")[0]
            for ending in (".final", ".checked", ".raw"):
                path = os.path.join(folder, sensor + ending)
                if os.path.exists(path) and os.path.getsize(path) == 4 * READINGS:
                    with open(path, "rb", buffering=0) as file:
                        rows.append(np.frombuffer(file.read(4 * READINGS), np.float32))
                    break
        return np.stack(rows)

    def batches(self, order):
        for start in range(0, len(order), BATCH):
            chosen = [self.folders[i] for i in order[start:start + BATCH]]
            readings = np.stack([self.read(folder) for folder in chosen])
            wanted = np.array([self.targets[folder] for folder in chosen], np.float32)
            yield torch.from_numpy(readings), torch.from_numpy(wanted)


class Forecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Conv1d(SENSORS, 24, 5, stride=3)
        self.out = nn.Linear(24, 1)

    def forward(self, readings):
        return self.out(torch.tanh(self.time(readings)).mean(2)).squeeze(1)


def main():
    torch.manual_seed(8)
    shuffler = random.Random(8)
    root = pathlib.Path(tempfile.mkdtemp(prefix="beds-"))
    try:
        hours = Hours(root, record(root))
        model = Forecast()
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
        steps, start = 0, time.perf_counter()
        for epoch in range(EPOCHS):
            order = list(range(HOURS))
            shuffler.shuffle(order)
            for readings, wanted in hours.batches(order):
                loss = ((model(readings) - wanted) ** 2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                steps += 1
            if epoch % 11 == 0:
                print("epoch %2d  %.5f" % (epoch, loss.item()))
        spent = time.perf_counter() - start
    finally:
        shutil.rmtree(root)
    print("%d steps, %.1f ms per step" % (steps, 1e3 * spent / steps))


if __name__ == "__main__":
    main()
