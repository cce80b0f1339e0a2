# truth: data_loading_bound
# about: every window of the side-scan sonar is unpacked, slant-corrected and despeckled by numpy in the training process itself, while the second core idles; workers of the loader would take it
# also: preprocessing_bound allocation_churn
# advice: num_workers
# cure: --workers 2
# whatif: workers=2
# needs: torch numpy
"""Segments the sea floor (sand, mud, rock) in windows of a side-scan sonar survey.

The survey lies in line files of packed windows. A stream reads them in order, corrects the slant range and takes the
speckle out; a small fully convolutional net learns the class of every range bin.
"""
import argparse
import os
import shutil
import struct
import tempfile
import time
import zlib

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the net is small

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

PINGS, BINS, CLASSES = 48, 192, 3


def write_survey(folder, lines, windows, seed):
    rng = np.random.default_rng(seed)
    paths = []
    for line in range(lines):
        path = os.path.join(folder, "line_%02d.sss" % line)
        with open(path, "wb") as out:
            for _ in range(windows):
                floor = np.cumsum(rng.normal(0, 0.15, (PINGS, BINS)), axis=1) + rng.normal(0, 1)
                label = np.digitize(floor, (-0.5, 0.7)).astype(np.uint8)
                level = np.array([300.0, 140.0, 900.0])[label]
                echo = level * rng.gamma(4.0, 0.25, (PINGS, BINS))
                height = rng.uniform(5, 12)
                pack = zlib.compress(echo.astype(np.int16).tobytes() + label.tobytes(), 1)
                out.write(struct.pack("<If", len(pack), height))
                out.write(pack)
        paths.append(path)
    return paths


def correct_slant(echo, height):
    slant = np.linspace(height * 1.02, 60.0, BINS)
    ground = np.sqrt(slant ** 2 - height ** 2)
    even = np.linspace(ground[0], ground[-1], BINS)
    return np.stack([np.interp(even, ground, ping) for ping in echo]).astype(np.float32)


def despeckle(echo):
    padded = np.pad(echo, 2, mode="edge")
    view = np.lib.stride_tricks.sliding_window_view(padded, (5, 5))
    return np.median(view.reshape(PINGS, BINS, 25), axis=2)


class SurveyStream(IterableDataset):
    def __init__(self, paths, passes):
        self.paths = paths
        self.passes = passes

    def __iter__(self):
        info = get_worker_info()
        mine = self.paths if info is None else self.paths[info.id::info.num_workers]
        for _ in range(self.passes):
            for path in mine:
                with open(path, "rb") as f:
                    while True:
                        head = f.read(8)
                        if not head:
                            break
                        size, height = struct.unpack("<If", head)
                        yield self.decode(f.read(size), height)

    def decode(self, pack, height):
        raw = zlib.decompress(pack)
        echo = np.frombuffer(raw, np.int16, PINGS * BINS).reshape(PINGS, BINS).astype(np.float32)
        label = np.frombuffer(raw, np.uint8, PINGS * BINS, PINGS * BINS * 2).reshape(PINGS, BINS)
        echo = despeckle(np.log1p(correct_slant(echo, height)))
        echo = (echo - echo.mean(axis=0)) / (echo.std() + 1e-6)
        return torch.from_numpy(echo[None].astype(np.float32)), torch.from_numpy(label.copy())


def build():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ReLU(),
        nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(),
        nn.Conv2d(16, CLASSES, 1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--passes", type=int, default=8)
    args = parser.parse_args()
    torch.manual_seed(5)
    folder = tempfile.mkdtemp(prefix="sonar_")
    try:
        paths = write_survey(folder, 8, 20, 5)
        loader = DataLoader(SurveyStream(paths, args.passes), batch_size=8, num_workers=args.workers)
        net = build()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
        begin, steps, total = time.perf_counter(), 0, 0.0
        for echo, label in loader:
            logits = F.interpolate(net(echo), size=(PINGS, BINS), mode="bilinear", align_corners=False)
            loss = F.cross_entropy(logits, label.long())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            steps += 1
        took = time.perf_counter() - begin
        print("%d steps, mean loss %.3f, %.2f ms a step" % (steps, total / steps, took / steps * 1e3))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
