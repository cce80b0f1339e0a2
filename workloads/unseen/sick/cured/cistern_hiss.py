"""Leaking cisterns by their sound: 8-bit mu-law recordings of loggers clamped to the pipe."""
import argparse
import glob
import os
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

WINDOW, TAPS = 4096, 65
_code = np.arange(256) / 127.5 - 1
MU_LAW = (np.sign(_code) * (256 ** np.abs(_code) - 1) / 255).astype(np.float32)
BAND = (np.sinc((np.arange(TAPS) - TAPS // 2) * 0.6) * np.hamming(TAPS) * 0.6).astype(np.float32)


def record(folder, count, seed=19):
    rng = np.random.default_rng(seed)
    overnight = set(rng.choice(count, count // 90, replace=False).tolist())
    for k in range(count):
        leaks = int(rng.integers(0, 2))
        hiss = rng.normal(128, 14, int(rng.integers(6000, 9000)))
        hiss = hiss[1:] + 0.8 * hiss[:-1] - 102 if leaks else hiss[1:] * 1.28 - 36
        hiss = np.clip(hiss, 0, 255).astype(np.uint8)
        np.tile(hiss, 1100 if k in overnight else 1).tofile(os.path.join(folder, "logger%04d_%d.ulaw" % (k, leaks)))


class Recordings(Dataset):
    def __init__(self, folder):
        self.paths = sorted(glob.glob(os.path.join(folder, "*.ulaw")))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        path = self.paths[i]
        middle = os.path.getsize(path) // 2
        start = middle - WINDOW // 2 - TAPS // 2
        sound = MU_LAW[np.fromfile(path, np.uint8, WINDOW + TAPS - 1, offset=start)]
        sound = np.convolve(sound, BAND, "valid")
        return torch.from_numpy(sound / (np.abs(sound).max() + 1e-6))[None], float(path[-6])


def model():
    return nn.Sequential(nn.Conv1d(1, 16, 33, stride=4), nn.ReLU(), nn.Conv1d(16, 24, 15, stride=4), nn.ReLU(),
                         nn.Conv1d(24, 32, 9, stride=4), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(32, 1))


def run(args):
    torch.manual_seed(19)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="cistern") as folder:
        record(folder, 720)
        net = model()
        opt = torch.optim.Adam(net.parameters(), 2e-3)
        loader = DataLoader(Recordings(folder), batch_size=10, shuffle=True, num_workers=1, persistent_workers=True)
        began = time.perf_counter()
        for epoch in range(args.epochs):
            total = 0.0
            for step, (sound, leaks) in enumerate(loader):
                loss = nn.functional.binary_cross_entropy_with_logits(net(sound).squeeze(1), leaks.float())
                opt.zero_grad()
                loss.backward()
                opt.step()
                total += loss.item()
                if args.steps and step + 1 >= args.steps:
                    break
            print("epoch %d: %.4f" % (epoch, total / (step + 1)))
        print("%.2f s, cpu %.2f" % (time.perf_counter() - began, time.process_time()))


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=9)
    ap.add_argument("--steps", type=int, default=0, help="per epoch; 0: all")
    run(ap.parse_args())
