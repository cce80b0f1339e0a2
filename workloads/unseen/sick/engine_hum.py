# truth: data_loading_bound
# about: the spectrogram of every clip is computed in the training process, because the loader has no workers, while the second core is idle
# also: preprocessing_bound
# advice: num_workers
# cure: --workers 2
# whatif: workers=2
# needs: torch numpy cores:2
"""Tells worn from sound engines by ten-second recordings of their hum, kept as 16-bit files."""
import argparse
import os
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

RATE = 4000
CLIPS = 160
FRAME = 512
HOP = 128
BANDS = 40


class Recordings(Dataset):
    def __init__(self, paths, worn):
        self.paths = paths
        self.worn = worn
        self.window = np.hanning(FRAME).astype(np.float32)
        edges = np.geomspace(4, FRAME // 2, BANDS + 2)
        bins = np.arange(FRAME // 2 + 1)[:, None]
        up = (bins - edges[:-2]) / np.maximum(edges[1:-1] - edges[:-2], 1e-6)
        down = (edges[2:] - bins) / np.maximum(edges[2:] - edges[1:-1], 1e-6)
        self.bands = np.maximum(0, np.minimum(up, down)).astype(np.float32)

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        sound = np.fromfile(self.paths[index], dtype=np.int16).astype(np.float32) / 32768
        frames = np.lib.stride_tricks.sliding_window_view(sound, FRAME)[::HOP]
        loud = np.empty((len(frames), BANDS), dtype=np.float32)
        for first in range(0, len(frames), 32):  # blocks that stay in the cache
            part = np.fft.rfft(frames[first:first + 32] * self.window, axis=1)
            loud[first:first + 32] = (part.real ** 2 + part.imag ** 2).astype(np.float32) @ self.bands
        picture = np.log(loud + 1e-6)
        picture -= picture.mean(axis=0)
        return torch.from_numpy(picture.T.copy()), self.worn[index]


def record(folder):
    dice = np.random.default_rng(3)
    paths, worn = [], []
    t = np.arange(RATE * 10) / RATE
    for clip in range(CLIPS):
        bad = clip % 2
        speed = dice.uniform(20, 40)
        sound = np.sin(2 * np.pi * speed * t) + 0.5 * dice.standard_normal(len(t))
        if bad:
            sound += 0.6 * np.sin(2 * np.pi * 17.3 * speed * t) * (np.sin(2 * np.pi * 3 * t) > 0.5)
        path = os.path.join(folder, f"{clip:04d}.raw")
        (sound * 6000).astype(np.int16).tofile(path)
        paths.append(path)
        worn.append(bad)
    return paths, worn


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=320)
    parser.add_argument("--workers", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(8)
    torch.set_num_threads(1)

    with tempfile.TemporaryDirectory(prefix="engines") as folder:
        paths, worn = record(folder)
        picks = torch.randint(CLIPS, (options.steps * 16,)).tolist()
        loader = DataLoader(Recordings(paths, worn), batch_size=16, sampler=picks, num_workers=options.workers)
        model = nn.Sequential(
            nn.Conv1d(BANDS, 64, 5, stride=2), nn.ReLU(), nn.Conv1d(64, 64, 5, stride=2), nn.ReLU(),
            nn.Conv1d(64, 64, 5), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(64, 2))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
        began = time.perf_counter()
        for step, (pictures, labels) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(pictures), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 80 == 0:
                print(f"step {step}: loss {loss.item():.3f}")
        took = time.perf_counter() - began
    print(f"{options.steps} steps, {1000 * took / options.steps:.2f} ms each, {took:.2f} s")


if __name__ == "__main__":
    main()
