#!/usr/bin/env python3
# truth: data_loading_bound
# about: tour logs are streamed from an object store by ranged requests of 9 ms each (the sleep stands for the network), one after
# about: the other in the training process, because the loader has no workers
# also: io_wait
# advice: num_workers
# cure: --workers 4
# whatif: workers=4
# needs: torch numpy
"""How long will the rest of the tour take?  A GRU over the stops of parcel vans."""
import argparse
import os
import shutil
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

STOPS, FIELDS = 32, 6
RECORD = STOPS * FIELDS * 4 + 4
DEPOTS, TOURS = 8, 416


class ObjectStore:
    """A bucket over the network: every ranged GET costs a round trip."""

    ROUND_TRIP = 0.009

    def __init__(self, root):
        self.root = root

    def keys(self):
        return sorted(os.listdir(self.root))

    def get(self, key, offset, length):
        time.sleep(self.ROUND_TRIP)
        with open(os.path.join(self.root, key), "rb") as f:
            f.seek(offset)
            return f.read(length)


class Tours(IterableDataset):
    PER_REQUEST = 4

    def __init__(self, root):
        self.store = ObjectStore(root)
        self.keys = self.store.keys()

    def __iter__(self):
        me = get_worker_info()
        keys = self.keys if me is None else self.keys[me.id::me.num_workers]
        for key in keys:
            for first in range(0, TOURS, self.PER_REQUEST):
                blob = self.store.get(key, first * RECORD, self.PER_REQUEST * RECORD)
                for at in range(0, len(blob), RECORD):
                    values = np.frombuffer(blob, np.float32, STOPS * FIELDS + 1, at)
                    stops = torch.from_numpy(values[:-1].reshape(STOPS, FIELDS).copy())
                    yield stops, torch.tensor(float(values[-1]))


def write_bucket(root):
    rng = np.random.default_rng(23)
    for depot in range(DEPOTS):
        stops = rng.normal(size=(TOURS, STOPS, FIELDS)).astype(np.float32)
        left = np.abs(stops[:, :, 0]).mean(1) + 0.3 * stops[:, -1, 1]
        rows = np.concatenate([stops.reshape(TOURS, -1), left[:, None]], axis=1)
        rows.astype(np.float32).tofile(os.path.join(root, f"depot-{depot:02d}.bin"))


class Remaining(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(FIELDS, 40, batch_first=True)
        self.head = nn.Linear(40, 1)

    def forward(self, stops):
        return self.head(self.gru(stops)[0][:, -1]).squeeze(1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--workers", type=int, default=0)
    args = ap.parse_args()
    torch.manual_seed(2)
    root = tempfile.mkdtemp(prefix="parcels")
    try:
        write_bucket(root)
        loader = DataLoader(Tours(root), batch_size=32, num_workers=args.workers)
        model = Remaining()
        opt = torch.optim.RMSprop(model.parameters(), lr=1e-3)
        loss_sum, steps, begin = 0.0, 0, time.perf_counter()
        for stops, left in loader:
            opt.zero_grad()
            loss = nn.functional.smooth_l1_loss(model(stops), left)
            loss.backward()
            opt.step()
            loss_sum += loss.item()
            steps += 1
        took = time.perf_counter() - begin
        print(f"mean loss {loss_sum / steps:.3f}; {steps} steps, {1e3 * took / steps:.1f} ms each, {took:.2f} s")
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
