# truth: small_reads
# about: the strip reader opens the survey's file unbuffered and takes every number of a light curve by a read of its own, 4 bytes at a time
# also: data_loading_bound preprocessing_bound
# cure: cured/lightcurve_strips.py
# needs: torch numpy
"""transit-finder: flags light curves with a planet's transit. Strips come from the survey's binary export."""
import argparse
import contextlib
import os
import struct
import tempfile
import time
from typing import Iterator, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

CADENCES = 480
MAGIC = b"LCS1"


class Strip(NamedTuple):
    flux: np.ndarray
    error: np.ndarray
    transit: int


def export_survey(path: str, stars: int, seed: int = 64) -> None:
    rng = np.random.default_rng(seed)
    time_axis = np.arange(CADENCES)
    with open(path, "wb") as sink:
        sink.write(MAGIC + struct.pack("<i", stars))
        for _ in range(stars):
            transit = int(rng.integers(2))
            flux = 1 + 0.002 * rng.normal(size=CADENCES)
            if transit:
                flux[(time_axis + rng.integers(90)) % 90 < 6] -= 0.008
            table = np.stack([flux, np.full(CADENCES, 0.002)], 1).astype("<f4")
            sink.write(struct.pack("<i", transit) + table.tobytes())


class StripReader:
    """One star after another out of an export file."""

    RECORD = 4 + 8 * CADENCES

    def __init__(self, path: str) -> None:
        self._file = open(path, "rb", buffering=0)

    def close(self) -> None:
        self._file.close()

    def _int(self) -> int:
        return struct.unpack("<i", self._file.read(4))[0]

    def _float(self) -> float:
        return struct.unpack("<f", self._file.read(4))[0]

    def strip(self, star: int) -> Strip:
        self._file.seek(8 + star * self.RECORD)
        transit = self._int()
        flux, error = np.empty(CADENCES, np.float32), np.empty(CADENCES, np.float32)
        for i in range(CADENCES):
            flux[i] = self._float()
            error[i] = self._float()
        return Strip(flux, error, transit)


class SurveyStream(IterableDataset):
    def __init__(self, path: str, stars: int, passes: int) -> None:
        super().__init__()
        self.path, self.stars, self.passes = path, stars, passes

    def __iter__(self) -> Iterator:
        info = get_worker_info()
        first, stride = (info.id, info.num_workers) if info else (0, 1)
        with contextlib.closing(StripReader(self.path)) as reader:
            for _ in range(self.passes):
                for star in range(first, self.stars, stride):
                    strip = reader.strip(star)
                    yield (strip.flux - np.float32(1)) / strip.error, strip.transit


class TransitNet(nn.Module):
    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv1d(1, width, 9, stride=4), nn.GELU(), nn.Conv1d(width, 2 * width, 5, stride=2), nn.GELU(),
                                  nn.AdaptiveMaxPool1d(4), nn.Flatten())
        self.head = nn.Linear(8 * width, 2)

    def forward(self, flux: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(flux.unsqueeze(1)))


def fit(path: str, stars: int, steps: int, batch: int) -> None:
    model = TransitNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, nesterov=True)
    loader = DataLoader(SurveyStream(path, stars, passes=1 + steps * batch // stars), batch_size=batch, num_workers=2)
    began = time.monotonic()
    for step, (flux, transit) in enumerate(loader):
        if step == steps:
            break
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(model(flux), transit)
        loss.backward()
        optimizer.step()
        if step % 60 == 0:
            print("[transit-finder] step %d loss %.4f" % (step, loss.item()))
    print("[transit-finder] %d steps, %.2f ms per step" % (steps, 1e3 * (time.monotonic() - began) / steps))


def cli() -> None:
    parser = argparse.ArgumentParser(prog="transit-finder")
    parser.add_argument("--steps", type=int, default=180)
    parser.add_argument("--batch", type=int, default=64)
    options = parser.parse_args()
    torch.manual_seed(64)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="survey") as folder:
        path = os.path.join(folder, "sector07.lcs")
        export_survey(path, stars=2048)
        fit(path, 2048, options.steps, options.batch)


if __name__ == "__main__":
    cli()
