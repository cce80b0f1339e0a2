# truth: small_reads
# about: the traces of an earthquake catalogue are read value by value, four bytes a call, from a file opened without a buffer; one read of the whole trace would do
# also: data_loading_bound
# cure: --whole-traces
# needs: torch numpy
"""Picks the arrival of the P wave in three-channel seismograms, read from one catalogue file."""
import argparse
import os
import struct
import tempfile
import time

import numpy as np
import torch
from torch import nn

CHANNELS, LENGTH = 3, 400
HEAD = struct.Struct(">IfI")           # station, gain, sample of the arrival


def write_catalogue(path, events):
    rng = np.random.default_rng(3)
    t = np.arange(LENGTH)
    with open(path, "wb") as out:
        for _ in range(events):
            arrival = int(rng.integers(40, LENGTH - 60))
            wave = rng.normal(0, 20, (CHANNELS, LENGTH))
            after = np.clip(t - arrival, 0, None)
            wave += 400 * np.sin(after * rng.uniform(0.3, 0.9)) * np.exp(-after / 50.0)
            out.write(HEAD.pack(int(rng.integers(90)), float(rng.uniform(0.5, 2)), arrival))
            out.write(wave.astype(">i4").tobytes())


class Catalogue:
    size = HEAD.size + CHANNELS * LENGTH * 4

    def __init__(self, path, whole):
        self.file = open(path, "rb", buffering=0)
        self.events = os.path.getsize(path) // self.size
        self.whole = whole

    def event(self, i):
        self.file.seek(i * self.size)
        _, gain, arrival = HEAD.unpack(self.file.read(HEAD.size))
        if self.whole:
            raw = self.file.read(CHANNELS * LENGTH * 4)
            trace = np.frombuffer(raw, ">i4").reshape(CHANNELS, LENGTH).astype(np.float32)
        else:
            trace = np.empty((CHANNELS, LENGTH), np.float32)
            for c in range(CHANNELS):
                for n in range(LENGTH):
                    trace[c, n] = int.from_bytes(self.file.read(4), "big", signed=True)
        return trace * (gain / 400), arrival

    def close(self):
        self.file.close()


class Picker(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([nn.Conv1d(CHANNELS, 16, 7, padding=3), nn.Conv1d(16, 32, 7, padding=3)])
        self.up = nn.Conv1d(32 + 16, 16, 7, padding=3)
        self.out = nn.Conv1d(16, 1, 1)

    def forward(self, x):
        a = torch.relu(self.down[0](x))
        b = torch.relu(self.down[1](nn.functional.max_pool1d(a, 4)))
        b = nn.functional.interpolate(b, size=a.shape[-1])
        return self.out(torch.relu(self.up(torch.cat([a, b], 1)))).squeeze(1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--whole-traces", action="store_true")
    ap.add_argument("--epochs", type=int, default=EPOCHS)
    args = ap.parse_args()
    torch.manual_seed(1)
    handle, path = tempfile.mkstemp(suffix=".cat")
    os.close(handle)
    try:
        write_catalogue(path, 960)
        catalogue = Catalogue(path, args.whole_traces)
        net = Picker()
        opt = torch.optim.RMSprop(net.parameters(), lr=1e-3)
        rng = np.random.default_rng(8)
        steps = 0
        begin = time.perf_counter()
        for epoch in range(args.epochs):
            order = rng.permutation(catalogue.events)
            for start in range(0, len(order), 24):
                events = [catalogue.event(int(i)) for i in order[start:start + 24]]
                x = torch.from_numpy(np.stack([e[0] for e in events]))
                y = torch.tensor([e[1] for e in events])
                loss = nn.functional.cross_entropy(net(x), y)
                opt.zero_grad()
                loss.backward()
                opt.step()
                steps += 1
            print(f"epoch {epoch} loss {loss.item():.3f}")
        spent = time.perf_counter() - begin
        print(f"{steps} steps, {spent:.2f} s, {1000 * spent / steps:.2f} ms a step")
        catalogue.close()
    finally:
        os.unlink(path)


EPOCHS = 5
if __name__ == "__main__":
    main()
