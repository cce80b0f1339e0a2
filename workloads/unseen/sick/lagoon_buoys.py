# truth: data_loading_bound
# about: the wave records lie in a bucket, each GET takes 7 ms (a sleep stands in for the request), and a single worker asks for them one after the other, so the training step waits for the batch
# also: io_wait
# advice: num_workers
# cure: --workers 6
# whatif: workers=6
# needs: torch numpy
"""Significant wave height, three hours ahead, from the lagoon's directional buoys.

Each buoy writes one object a day: int16 displacement (heave, north, west), 24 half-hour bursts.  A sample is one burst;
its label is the wave height of the burst six places later.
"""
import argparse
import os
import random
import shutil
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

BURST = 768            # displacement triples in a burst
BURSTS_A_DAY = 22
LEAD = 6
GET_SECONDS = 0.007    # what the bucket takes to answer


def lay_down_bucket(folder, buoys=8, days=12, seed=3):
    """Random seas: three swell trains and some wind chop, in int16 centimetres."""
    rng = np.random.default_rng(seed)
    t = np.arange(BURST) / 2.56
    names = []
    for b in range(buoys):
        for d in range(days):
            day = np.empty((BURSTS_A_DAY, BURST, 3), np.int16)
            height = 0.6 + rng.random() * 2.5
            for k in range(BURSTS_A_DAY):
                height = max(0.2, height + rng.normal(0, 0.08))
                sea = np.zeros(BURST)
                for _ in range(3):
                    sea += height * rng.random() * np.sin(2 * np.pi * t / rng.uniform(4, 14) + rng.random() * 6.28)
                for axis in range(3):
                    day[k, :, axis] = 100 * (np.roll(sea, 3 * axis) + rng.normal(0, 0.05 * height, BURST))
            name = f"buoy{b:02d}-{d:03d}.i16"
            day.tofile(os.path.join(folder, name))
            names.append(name)
    return names


class Bucket:
    """The few lines of an object store client that we need: ranged GETs."""

    def __init__(self, root):
        self.root = root

    def get(self, name, first, count):
        time.sleep(GET_SECONDS)          # the request to the store
        with open(os.path.join(self.root, name), "rb") as f:
            f.seek(first)
            return f.read(count)


class BurstStream(IterableDataset):
    def __init__(self, root, names, seed):
        self.bucket = Bucket(root)
        plan = [(n, k) for n in names for k in range(BURSTS_A_DAY - LEAD)]
        random.Random(seed).shuffle(plan)
        self.plan = plan

    def __iter__(self):
        me = get_worker_info()
        plan = self.plan if me is None else self.plan[me.id::me.num_workers]
        size = BURST * 3 * 2
        for name, k in plan:
            # one ranged GET spans the burst and the one that has the label
            raw = np.frombuffer(self.bucket.get(name, k * size, (LEAD + 1) * size), np.int16)
            raw = raw.reshape(LEAD + 1, BURST, 3)
            heave = raw[LEAD, :, 0].astype(np.float32) / 100
            x = torch.from_numpy(raw[0].T.astype(np.float32) / 100)
            yield x, np.float32(4 * heave.std())


class SeaState(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.front = nn.Sequential(
            nn.Conv1d(3, width, 9, stride=4, padding=4), nn.GELU(),
            nn.Conv1d(width, width, 5, stride=2, padding=2), nn.GELU(),
            nn.Conv1d(width, width, 5, stride=2, padding=2), nn.GELU())
        self.memory = nn.GRU(width, 128, batch_first=True)
        self.head = nn.Linear(128, 1)

    def forward(self, x):
        _, h = self.memory(self.front(x).transpose(1, 2))
        return self.head(h[-1]).squeeze(1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--workers", type=int, default=1)
    ap.add_argument("--batch", type=int, default=16)
    args = ap.parse_args()
    torch.manual_seed(11)
    root = tempfile.mkdtemp(prefix="lagoon-")
    try:
        names = lay_down_bucket(root)
        stream = BurstStream(root, names, seed=5)
        loader = DataLoader(stream, batch_size=args.batch, num_workers=args.workers, drop_last=True)
        net = SeaState()
        opt = torch.optim.Adam(net.parameters(), lr=1e-3)
        loss_fn = nn.SmoothL1Loss()
        seen, running = 0, 0.0
        for x, y in loader:
            opt.zero_grad()
            loss = loss_fn(net(x), y)
            loss.backward()
            opt.step()
            seen += 1
            running += loss.item()
            if seen % 24 == 0:
                print(f"burst {seen * args.batch:5d}  huber {running / 24:.4f}")
                running = 0.0
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
