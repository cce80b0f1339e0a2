# truth: none
# about: an IterableDataset reads shards of barge tracks one whole shard at a time in one worker, well ahead of the model, which computes on the other core all the time
# env: OMP_NUM_THREADS=1
# needs: torch numpy
"""Type of vessel from radar tracks on a river, streamed from shards."""
import glob
import os
import shutil
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

TYPES, POINTS = 5, 128


def write_shards(folder, shards=14, tracks=320):
    rng = np.random.default_rng(88)
    for s in range(shards):
        kind = rng.integers(0, TYPES, tracks)
        speed = 1 + 0.4 * kind[:, None] + 0.2 * rng.normal(size=(tracks, POINTS))
        sway = 0.3 * np.sin(np.arange(POINTS) * (0.1 + 0.05 * kind[:, None]))
        echo = rng.gamma(2 + kind[:, None], 0.5, size=(tracks, POINTS))
        np.savez(os.path.join(folder, f"shard-{s:03d}.npz"),
                 tracks=np.stack([speed, sway, echo], 1).astype(np.float32), kind=kind)


class TrackStream(IterableDataset):
    """Tracks from shards in a new order each time, mixed within the shard."""

    def __init__(self, folder, seed=0):
        self.paths = sorted(glob.glob(os.path.join(folder, "*.npz")))
        self.rng = np.random.default_rng(seed)

    def __iter__(self):
        for p in self.rng.permutation(len(self.paths)):
            with np.load(self.paths[p]) as shard:
                tracks, kind = shard["tracks"], shard["kind"]
            for i in self.rng.permutation(len(kind)):
                yield tracks[i], kind[i]


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Conv1d(width, width, 5, padding=2), nn.BatchNorm1d(width), nn.ReLU(),
                                  nn.Conv1d(width, width, 5, padding=2), nn.BatchNorm1d(width))

    def forward(self, x):
        return torch.relu(x + self.body(x))


def main():
    torch.manual_seed(88)
    folder = tempfile.mkdtemp(prefix="river")
    try:
        write_shards(folder)
        loader = DataLoader(TrackStream(folder), batch_size=32, num_workers=1, persistent_workers=True)
        model = nn.Sequential(nn.Conv1d(3, 64, 5, padding=2), nn.ReLU(), Residual(64), Residual(64),
                              nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(64, TYPES))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9, weight_decay=1e-4)
        seen = 0
        for turn in range(2):
            hits = torch.zeros((), dtype=torch.long)
            seen = 0
            for tracks, kind in loader:
                scores = model(tracks)
                loss = nn.functional.cross_entropy(scores, kind)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                hits += (scores.argmax(1) == kind).sum()
                seen += len(kind)
            print(f"turn {turn}: {hits.item() / seen:.3f} of {seen} tracks")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
