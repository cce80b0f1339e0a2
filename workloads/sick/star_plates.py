# truth: data_loading_bound
# about: photographic plates are unpacked (bzip2, row differences, rebinning) in the training process itself, one after the other, while the second core has nothing to do
# also: preprocessing_bound
# advice: num_workers
# cure: --workers 2
# whatif: workers=2
# needs: torch numpy cores:2
"""Find variable stars on digitised sky plates."""
import argparse
import bz2
import pathlib
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIDE = 216


def digitise(folder, count):
    """Plates as the archive ships them: 16 bits, differences along the row, bzip2."""
    rng = np.random.default_rng(1887)
    y, x = np.mgrid[-12:13, -12:13]
    star = np.exp(-(y ** 2 + x ** 2) / 9.0)
    for i in range(count):
        sky = rng.poisson(90, (SIDE, SIDE)).astype(np.float64)
        label = i % 2
        for _ in range(6 + 8 * label):
            row, column = rng.integers(12, SIDE - 13, 2)
            sky[row - 12:row + 13, column - 12:column + 13] += rng.uniform(200, 4000) * star
        plate = np.minimum(sky, 65535).astype(np.uint16)
        rows = np.diff(plate, axis=1, prepend=np.zeros((SIDE, 1), np.uint16))
        (folder / ("plate%04d_%d.bz2" % (i, label))).write_bytes(bz2.compress(rows.tobytes(), 9))


class PlateArchive(Dataset):
    def __init__(self, folder):
        self.paths = sorted(folder.glob("*.bz2"))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        path = self.paths[index]
        rows = np.frombuffer(bz2.decompress(path.read_bytes()), np.uint16).reshape(SIDE, SIDE)
        plate = np.cumsum(rows, axis=1, dtype=np.uint16).astype(np.float32)
        plate = plate.reshape(SIDE // 3, 3, SIDE // 3, 3).mean(axis=(1, 3))
        stretched = np.arcsinh((plate - np.median(plate)) / 40.0)
        return torch.from_numpy(stretched[None]), int(path.stem[-1])


class StarNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, 12, 5, stride=2, padding=2)
        self.body = nn.Conv2d(12, 24, 3, stride=2, padding=1)
        self.head = nn.Linear(24, 2)

    def forward(self, plates):
        hidden = torch.relu(self.body(torch.relu(self.stem(plates))))
        return self.head(hidden.amax(dim=(2, 3)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=13)
    args = parser.parse_args()
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory(prefix="plates-") as name:
        folder = pathlib.Path(name)
        digitise(folder, 160)
        loader = DataLoader(PlateArchive(folder), batch_size=16, shuffle=True, drop_last=True,
                            num_workers=args.workers, persistent_workers=args.workers > 0)
        model = StarNet()
        optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
        begin = time.perf_counter()
        steps = 0
        for epoch in range(args.epochs):
            right = 0
            for plates, labels in loader:
                optimizer.zero_grad()
                scores = model(plates)
                nn.functional.cross_entropy(scores, labels).backward()
                optimizer.step()
                right += (scores.argmax(1) == labels).sum().item()
                steps += 1
            print("epoch", epoch, "accuracy %.3f" % (right / 160))
        spent = time.perf_counter() - begin
        print("%d steps, %.1f ms per step" % (steps, 1e3 * spent / steps))


if __name__ == "__main__":
    main()
