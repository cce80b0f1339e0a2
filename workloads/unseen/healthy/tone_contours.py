# truth: none
# about: lexical tones from pitch contours in files, read by one lasting worker that is always ahead; a few frames are cut and shifted, and the convolutions take the step
# needs: torch numpy
import argparse
import os
import tempfile
import time

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

SHAPES = [(0.9, 0.9), (0.4, 0.9), (0.3, 0.5), (0.95, 0.1), (0.5, 0.5)]


def record(folder, speakers, per_speaker):
    rng = np.random.default_rng(52)
    t = np.linspace(0, 1, 128)
    for s in range(speakers):
        tones = rng.integers(0, len(SHAPES), per_speaker)
        ends = np.array(SHAPES)[tones]
        pitch = ends[:, :1] + (ends[:, 1:] - ends[:, :1]) * t + rng.normal(0, 0.1, (per_speaker, 1))
        pitch[tones == 2] -= 0.8 * (t * (1 - t))
        voice = pitch[:, None] * rng.uniform(0.5, 1.5, (1, 8, 1)) + rng.normal(0, 0.1, (per_speaker, 8, 128))
        np.savez(os.path.join(folder, "speaker%03d.npz" % s), voice=voice.astype(np.float32), tones=tones)


class Syllables(Dataset):
    """One item is a batch: the syllables of one speaker."""

    def __init__(self, folder):
        self.paths = sorted(os.path.join(folder, name) for name in os.listdir(folder))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        with np.load(self.paths[i]) as f:
            voice, tones = f["voice"], f["tones"]
        start = i % 8
        return torch.from_numpy(voice[:, :, start:start + 120] - voice.mean()), torch.from_numpy(tones)


def conv(a, b, stride=1):
    return nn.Sequential(nn.Conv1d(a, b, 5, stride, 2), nn.BatchNorm1d(b), nn.ReLU())


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=6)
    args = ap.parse_args()
    torch.manual_seed(52)
    torch.set_num_threads(2)
    net = nn.Sequential(conv(8, 64), conv(64, 96, 2), conv(96, 96), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(96, len(SHAPES)))
    opt = torch.optim.SGD(net.parameters(), 0.03, momentum=0.9)
    with tempfile.TemporaryDirectory(prefix="tones") as folder:
        record(folder, 60, 64)
        loader = DataLoader(Syllables(folder), batch_size=None, shuffle=True, num_workers=1, prefetch_factor=4, persistent_workers=True)
        for epoch in range(args.epochs):
            right, began = 0, time.perf_counter()
            for x, y in loader:
                out = net(x)
                loss = nn.functional.cross_entropy(out, y)
                opt.zero_grad()
                loss.backward()
                opt.step()
                right += (out.argmax(1) == y).sum().item()
            print("epoch %d: %.3f, %.1f s" % (epoch, right / (60 * 64), time.perf_counter() - began))
        del loader


if __name__ == "__main__":
    main()
