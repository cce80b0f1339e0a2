# truth: small_reads
# about: the reader of the sonar's ping records, ported from the maker's C example, takes every 2-byte field and every 4-byte sample with a read of its own from an unbuffered file
# also: data_loading_bound preprocessing_bound
# cure: --blocks
# needs: torch numpy
"""Sea-bed classes (mud, sand, gravel, rock, weed) from single-beam sonar pings.

A survey line is a file of ping records: a header of six fields, then the echo's samples."""
import argparse
import os
import shutil
import struct
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SAMPLES = 320
HEADER = struct.Struct("<HHfff")
RECORD = HEADER.size + 4 * SAMPLES
CLASSES = 5


def survey(folder, lines, pings, seed=5):
    rng = np.random.default_rng(seed)
    kind = np.dtype([("class", "<u2"), ("gain", "<u2"), ("lat", "<f4"), ("lon", "<f4"), ("depth", "<f4"),
                     ("echo", "<f4", SAMPLES)])
    depth_axis = np.arange(SAMPLES, dtype=np.float32)
    paths = []
    for line in range(lines):
        rec = np.zeros(pings, kind)
        rec["class"] = rng.integers(0, CLASSES, pings)
        rec["gain"] = rng.integers(20, 40, pings)
        rec["depth"] = rng.uniform(40, 200, pings)
        rec["lat"] = 54 + rng.normal(0, 0.1, pings)
        rec["lon"] = 8 + rng.normal(0, 0.1, pings)
        tail = (3 + 7 * rec["class"].astype(np.float32))[:, None]
        late = np.clip(depth_axis[None] - rec["depth"][:, None], 0, None)
        rec["echo"] = (late > 0) * np.exp(-late / tail) + rng.normal(0, 0.15, (pings, SAMPLES))
        path = os.path.join(folder, "line%02d.png1" % line)
        rec.tofile(path)
        paths.append(path)
    return paths


class PingReader:
    """One survey line, read as the maker's manual describes it."""

    def __init__(self, path):
        self.file = open(path, "rb", buffering=0)

    def u16(self):
        return struct.unpack("<H", self.file.read(2))[0]

    def f32(self):
        return struct.unpack("<f", self.file.read(4))[0]

    def ping(self, number):
        self.file.seek(number * RECORD)
        bed, gain = self.u16(), self.u16()
        self.f32(), self.f32()
        depth = self.f32()
        echo = [self.f32() for _ in range(SAMPLES)]
        return bed, gain, depth, np.array(echo, np.float32)


class BlockReader(PingReader):
    """The same with one read for a record."""

    def ping(self, number):
        self.file.seek(number * RECORD)
        block = self.file.read(RECORD)
        bed, gain, _, _, depth = HEADER.unpack_from(block)
        return bed, gain, depth, np.frombuffer(block, np.float32, SAMPLES, HEADER.size).copy()


class Pings(Dataset):
    def __init__(self, paths, pings, reader):
        self.paths, self.pings, self.reader = paths, pings, reader
        self.open = {}

    def __len__(self):
        return len(self.paths) * self.pings

    def __getitem__(self, i):
        line, number = divmod(i, self.pings)
        if line not in self.open:
            self.open[line] = self.reader(self.paths[line])
        bed, gain, depth, echo = self.open[line].ping(number)
        echo *= 30.0 / gain
        return torch.from_numpy(echo)[None], torch.tensor([depth / 100]), bed


class BedNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.echo = nn.Sequential(nn.Conv1d(1, 12, 9, stride=2), nn.ReLU(), nn.Conv1d(12, 24, 7, stride=2), nn.ReLU(),
                                  nn.AdaptiveAvgPool1d(8), nn.Flatten())
        self.head = nn.Sequential(nn.Linear(24 * 8 + 1, 64), nn.ReLU(), nn.Linear(64, CLASSES))

    def forward(self, echo, depth):
        return self.head(torch.cat([self.echo(echo), depth], 1))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--blocks", action="store_true", help="read a whole record at once")
    ap.add_argument("--epochs", type=int, default=6)
    args = ap.parse_args()
    torch.manual_seed(5)
    folder = tempfile.mkdtemp(prefix="sonar")
    try:
        lines, pings = 8, 600
        paths = survey(folder, lines, pings)
        data = Pings(paths, pings, BlockReader if args.blocks else PingReader)
        loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=2, persistent_workers=True, drop_last=True)
        net = BedNet()
        opt = torch.optim.Adam(net.parameters(), 2e-3)
        steps, began = 0, time.perf_counter()
        for epoch in range(args.epochs):
            right = seen = 0
            for echo, depth, bed in loader:
                out = net(echo, depth)
                loss = nn.functional.cross_entropy(out, bed)
                opt.zero_grad(set_to_none=True)
                loss.backward()
                opt.step()
                right += int((out.argmax(1) == bed).sum())
                seen += len(bed)
                steps += 1
            print("epoch %d: %.1f %% right" % (epoch, 100 * right / seen))
        took = time.perf_counter() - began
        print("%d steps, %.1f s, %.2f ms each" % (steps, took, 1e3 * took / steps))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
