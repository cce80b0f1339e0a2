# truth: data_loading_bound
# about: an iterable data set turns each window of an underwater recording into a normalised spectrogram in numpy, in the training process itself (num_workers=0), while the second core idles; two workers would hide most of it
# also: preprocessing_bound
# advice: num_workers
# cure: --workers 2
# whatif: workers=2
# needs: torch numpy cores:2
"""Which whale was it: a small convolutional network on spectrograms of hydrophone recordings."""
import argparse
import os
import shutil
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

RATE = 8000
WINDOW = 2 * RATE
NFFT, HOP, BANDS = 512, 48, 48


def record(folder, tapes=4, seconds=180):
    """Noise with calls in it: every species sweeps its own way."""
    rng = np.random.default_rng(11)
    for tape in range(tapes):
        sound = rng.standard_normal(seconds * RATE).astype(np.float32) * 300
        kinds = rng.integers(0, 4, seconds // 2)
        t = np.arange(WINDOW, dtype=np.float32) / RATE
        for w, kind in enumerate(kinds):
            sweep = np.sin(2 * np.pi * (300 + 350 * kind + (150 - 80 * kind) * t) * t)
            sound[w * WINDOW:(w + 1) * WINDOW] += 500 * sweep.astype(np.float32)
        sound.astype(np.int16).tofile(os.path.join(folder, f"tape{tape}.pcm"))
        np.save(os.path.join(folder, f"tape{tape}.npy"), kinds)


def filterbank():
    edges = np.geomspace(60, RATE / 2 - 1, BANDS + 2) / (RATE / 2) * (NFFT // 2)
    bins = np.arange(NFFT // 2 + 1)
    up = (bins - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    down = (edges[2:, None] - bins) / (edges[2:] - edges[1:-1])[:, None]
    return np.maximum(0, np.minimum(up, down)).astype(np.float32)


class Calls(IterableDataset):
    def __init__(self, folder, windows):
        self.folder = folder
        self.windows = windows
        self.bank = filterbank()
        self.hann = np.hanning(NFFT).astype(np.float32)

    def spectrogram(self, sound):
        frames = np.lib.stride_tricks.sliding_window_view(sound, NFFT)[::HOP] * self.hann
        power = np.abs(np.fft.rfft(frames, axis=1)).astype(np.float32) ** 2
        bands = power @ self.bank.T
        level = np.empty_like(bands)                 # per-channel energy normalisation
        smooth = bands[0]
        for i in range(len(bands)):
            smooth = 0.97 * smooth + 0.03 * bands[i]
            level[i] = smooth
        return ((bands / (level + 1e-3) + 2.0) ** 0.5 - 2.0 ** 0.5).T

    def __iter__(self):
        info = get_worker_info()
        first, stride = (info.id, info.num_workers) if info else (0, 1)
        tapes = [np.memmap(os.path.join(self.folder, f"tape{t}.pcm"), np.int16, "r") for t in range(4)]
        kinds = [np.load(os.path.join(self.folder, f"tape{t}.npy")) for t in range(4)]
        order = np.random.default_rng(5)
        for n in range(self.windows):
            tape = int(order.integers(4))
            w = int(order.integers(len(kinds[tape])))
            if n % stride != first:
                continue
            sound = tapes[tape][w * WINDOW:(w + 1) * WINDOW].astype(np.float32) / 32768
            yield torch.from_numpy(np.ascontiguousarray(self.spectrogram(sound)[None])), int(kinds[tape][w])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--workers", type=int, default=0)
    ap.add_argument("--steps", type=int, default=STEPS)
    args = ap.parse_args()
    torch.manual_seed(0)
    folder = tempfile.mkdtemp(prefix="hydro")
    try:
        record(folder)
        loader = DataLoader(Calls(folder, args.steps * 16), batch_size=16, num_workers=args.workers)
        net = nn.Sequential(
            nn.Conv2d(1, 8, 5, stride=2, padding=2), nn.BatchNorm2d(8), nn.ReLU(),
            nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 4))
        opt = torch.optim.AdamW(net.parameters(), lr=2e-3)
        loss_of = nn.CrossEntropyLoss()
        begin = time.perf_counter()
        steps = 0
        for x, y in loader:
            opt.zero_grad()
            loss = loss_of(net(x), y)
            loss.backward()
            opt.step()
            steps += 1
            if steps % 30 == 0:
                print(f"step {steps} loss {loss.item():.3f}")
        spent = time.perf_counter() - begin
        print(f"{steps} steps, {spent:.2f} s, {1000 * spent / steps:.2f} ms a step")
    finally:
        shutil.rmtree(folder)


STEPS = 150
if __name__ == "__main__":
    main()
