# truth: fd_leak
# about: the reader of force-plate trials opens a descriptor for every trial it reads and never closes it, so the process holds four more after every step
# cure: --close
# gain: none
# needs: torch numpy
"""Walking patterns from force plates: an autoencoder for strides, trained on trials that are drawn from a folder."""
import argparse
import os
import pathlib
import shutil
import tempfile
import time

import numpy as np
import torch
from torch import nn

CHANNELS, LENGTH, STRIDES = 6, 128, 24


def record(folder, walkers, seed=53):
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 2 * np.pi, LENGTH, dtype=np.float32)
    for walker in range(walkers):
        amp, pace = rng.uniform(0.5, 2, (STRIDES, CHANNELS, 1)), rng.uniform(0.8, 1.2, (STRIDES, 1, 1))
        force = amp * np.sin(pace * t * (1 + np.arange(CHANNELS)[:, None])) + rng.normal(0, 0.05, (STRIDES, CHANNELS, LENGTH))
        (folder / ("walker%03d.trial" % walker)).write_bytes(force.astype("<f4").tobytes())
    return sorted(folder.glob("*.trial"))


class Trials:
    def __init__(self, paths, close):
        self.paths, self.close = paths, close

    def read(self, number):
        fd = os.open(self.paths[number], os.O_RDONLY)
        size = os.fstat(fd).st_size
        raw = os.pread(fd, size, 0)
        if self.close:
            os.close(fd)
        return np.frombuffer(raw, np.float32).reshape(STRIDES, CHANNELS, LENGTH)

    def batch(self, rng, trials):
        return torch.from_numpy(np.concatenate([self.read(n) for n in rng.choice(len(self.paths), trials, False)]))


class StrideCoder(nn.Module):
    def __init__(self, width=320):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv1d(CHANNELS, 56, 5, padding=2), nn.GELU(), nn.Conv1d(56, 64, 5, 2, padding=2), nn.GELU(),
                                 nn.Conv1d(64, 64, 5, 2, padding=2), nn.GELU())
        self.code = nn.Linear(64 * LENGTH // 4, 24)
        self.dec = nn.Sequential(nn.Linear(24, width), nn.GELU(), nn.Linear(width, CHANNELS * LENGTH))

    def forward(self, x):
        return self.dec(self.code(self.enc(x).flatten(1))).view_as(x)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--close", action="store_true")
    ap.add_argument("--steps", type=int, default=200)
    args = ap.parse_args()
    torch.manual_seed(53)
    rng = np.random.default_rng(54)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="gait"))
    try:
        trials = Trials(record(folder, 240), args.close)
        net = StrideCoder()
        opt = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9, nesterov=True)
        began = time.perf_counter()
        for step in range(1, args.steps + 1):
            x = trials.batch(rng, 4)
            loss = nn.functional.mse_loss(net(x), x)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            if step % 50 == 0:
                print("step %d: error %.4f" % (step, loss.item()))
        took = time.perf_counter() - began
        print("%d steps, %.1f s, %.2f ms each; %d descriptors" %
              (args.steps, took, 1e3 * took / args.steps, len(os.listdir("/proc/self/fd"))))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
