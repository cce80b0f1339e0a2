# truth: data_loading_bound
# about: sonar sweeps lie bz2-compressed in one pack file and the training process unpacks each of them itself before every step, while the second core has nothing to do
# also: preprocessing_bound
# advice: num_workers
# cure: --workers 2
# whatif: workers=2
# env: OMP_NUM_THREADS=1
# needs: torch numpy cores:2
"""Tells kinds of sea bed apart in sweeps of a side-scan sonar.

A survey boat writes sweeps into one pack file: bz2 records after each other and an index
of offsets. Each sweep is a small grey picture, stored as differences along the track.
"""
import argparse
import bz2
import os
import struct
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

KINDS = ("sand", "mud", "rock", "weed")
ROWS, COLS = 192, 256


def draw_sweep(rng, kind):
    """A sweep with ripples whose wave length depends on the kind of the bed."""
    along = np.arange(ROWS, dtype=np.float32)[:, None]
    across = np.arange(COLS, dtype=np.float32)[None, :]
    wave = 5.0 + 6.0 * kind
    picture = 1500 + 500 * np.sin(along / wave + across / (wave * 1.7) + rng.uniform(0, 6))
    picture = picture + rng.normal(0, 12 + 4 * kind, size=(ROWS, COLS))
    return picture.astype(np.int16)


def write_pack(path, count, seed):
    rng = np.random.default_rng(seed)
    offsets, kinds = [0], []
    with open(path, "wb") as pack:
        for _ in range(count):
            kind = int(rng.integers(len(KINDS)))
            steps = np.diff(draw_sweep(rng, kind), axis=0, prepend=np.zeros((1, COLS), np.int16))
            record = bz2.compress(struct.pack("<HH", ROWS, COLS) + steps.tobytes(), 1)
            pack.write(record)
            offsets.append(offsets[-1] + len(record))
            kinds.append(kind)
    np.savez(path + ".index.npz", offsets=np.array(offsets), kinds=np.array(kinds))


class SweepPack(Dataset):
    """Random access to the sweeps of a pack. The file is opened by each process for itself."""

    def __init__(self, path):
        index = np.load(path + ".index.npz")
        self.path = path
        self.offsets = index["offsets"]
        self.kinds = index["kinds"]
        self._pack = None
        self._owner = None

    def __len__(self):
        return len(self.kinds)

    def _record(self, number):
        if self._owner != os.getpid():
            self._pack = open(self.path, "rb")
            self._owner = os.getpid()
        begin, end = int(self.offsets[number]), int(self.offsets[number + 1])
        self._pack.seek(begin)
        return self._pack.read(end - begin)

    def __getitem__(self, number):
        raw = bz2.decompress(self._record(number))
        rows, cols = struct.unpack_from("<HH", raw)
        steps = np.frombuffer(raw, np.int16, offset=4).reshape(rows, cols)
        picture = np.cumsum(steps, axis=0, dtype=np.int16)
        picture = torch.from_numpy(picture[::2, ::2].astype(np.float32))
        return (picture - 1500.0).div_(500.0).unsqueeze(0), int(self.kinds[number])


class BedNet(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, width, 5, stride=2, padding=2), nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(2 * width, 2 * width, 3, padding=1), nn.ReLU(),
            nn.AdaptiveAvgPool2d(2), nn.Flatten())
        self.head = nn.Linear(8 * width, len(KINDS))

    def forward(self, pictures):
        return self.head(self.body(pictures))


def train(model, loader, epochs, rate):
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    for epoch in range(epochs):
        right = seen = 0
        for pictures, kinds in loader:
            scores = model(pictures)
            loss = nn.functional.cross_entropy(scores, kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += int((scores.argmax(1) == kinds).sum())
            seen += len(kinds)
        print(f"epoch {epoch}: {right / seen:.1%} of the sweeps right")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sweeps", type=int, default=144)
    parser.add_argument("--epochs", type=int, default=9)
    parser.add_argument("--batch", type=int, default=12)
    parser.add_argument("--rate", type=float, default=0.02)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--seed", type=int, default=11)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="sonar") as folder:
        path = os.path.join(folder, "survey.pack")
        write_pack(path, args.sweeps, args.seed)
        loader = DataLoader(SweepPack(path), batch_size=args.batch, shuffle=True, num_workers=args.workers,
                            persistent_workers=args.workers > 0)
        train(BedNet(), loader, args.epochs, args.rate)


if __name__ == "__main__":
    main()
