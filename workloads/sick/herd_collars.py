#!/usr/bin/env python3
# truth: data_loading_bound
# about: a generator opens and unpacks the collar logs one after the other in the loop's own thread while the network waits, and the network's turn leaves the files alone; one core idles all the time, reading ahead would use it
# also: preprocessing_bound
# cure: cured/herd_collars.py
# needs: torch numpy
"""What is the cow doing: grazing, lying, walking, ruminating. Collar accelerometers, one bz2 log a cow and hour."""
import bz2
import random
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn

DOINGS = ["grazing", "lying", "walking", "ruminating"]
LOGS, READINGS, PER_BATCH, EPOCHS = 480, 6000, 16, 6


def write_logs(folder):
    rng = np.random.default_rng(77)
    t = np.arange(READINGS)
    for n in range(LOGS):
        doing = n % len(DOINGS)
        beat = np.sin(t[:, None] * (0.05 + 0.11 * doing) + rng.uniform(0, 6, 3)) * (300 + 150 * doing)
        log = (beat + rng.normal(0, 60, (READINGS, 3))).astype("<i2")
        (folder / f"cow{n:03d}.{DOINGS[doing]}.bz2").write_bytes(bz2.compress(log.tobytes(), 9))


def read_log(path):
    raw = bz2.decompress(path.read_bytes())
    log = np.frombuffer(raw, "<i2").reshape(READINGS, 3)
    return torch.from_numpy(log.T.astype(np.float32) / 1000), DOINGS.index(path.suffixes[0][1:])


def batches(paths, seed):
    paths = list(paths)
    random.Random(seed).shuffle(paths)
    for i in range(0, len(paths), PER_BATCH):
        logs = [read_log(p) for p in paths[i:i + PER_BATCH]]
        yield torch.stack([x for x, _ in logs]), torch.tensor([y for _, y in logs])


net_layers = [nn.Conv1d(3, 24, 9, stride=4), nn.ReLU(), nn.Conv1d(24, 48, 9, stride=4), nn.ReLU(),
              nn.Conv1d(48, 64, 9, stride=2), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(64, len(DOINGS))]


def main():
    torch.manual_seed(77)
    torch.set_num_threads(1)
    net = nn.Sequential(*net_layers)
    for layer in net:
        if hasattr(layer, "reset_parameters"):
            layer.reset_parameters()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    with tempfile.TemporaryDirectory(prefix="collars") as name:
        write_logs(Path(name))
        paths = sorted(Path(name).iterdir())
        steps, begin = 0, time.perf_counter()
        for epoch in range(EPOCHS):
            for x, y in batches(paths, epoch):
                loss = nn.functional.cross_entropy(net(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                steps += 1
            print("epoch", epoch, "loss", round(loss.item(), 3))
        seconds = time.perf_counter() - begin
    print(f"{steps} steps, {1000 * seconds / steps:.1f} ms a step")


if __name__ == "__main__":
    main()
