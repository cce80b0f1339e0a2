# truth: preprocessing_bound
# about: the running median that takes the baseline out of a heart trace is worked out window by window in Python, and this keeps both loader processes busy many times longer than the network needs
# also: data_loading_bound
# cure: --vectorised
# whatif: transform=16
# needs: torch numpy
"""Beats that come too early, from long heart traces: an endless stream of windows feeds a small network."""
import argparse
import itertools
import os
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

WINDOW, SPAN = 480, 61


def holter(path, samples, seed=61):
    """A day's trace (shortened): beats, early beats, a wandering baseline; and the places of early beats."""
    rng = np.random.default_rng(seed)
    gaps = rng.integers(95, 125, samples // 100)
    early = rng.random(len(gaps)) < 0.12
    gaps[early] -= 45
    at = np.cumsum(gaps)
    at, early = at[at < samples - 40], early[:len(at[at < samples - 40])]
    trace = np.zeros(samples, np.float32)
    trace[at] = np.where(early, 1.6, 1.0)
    trace = np.convolve(trace, np.diff(np.hanning(18), prepend=0) * 5, "same")
    trace += 0.8 * np.cumsum(rng.normal(0, 0.02, samples)) + rng.normal(0, 0.03, samples)
    trace.astype(np.float32).tofile(path)
    mark = np.zeros(samples, bool)
    mark[at[early]] = True
    return np.cumsum(mark)


def remove_baseline(trace):
    """Less the running median; the window is cut at the ends."""
    half = SPAN // 2
    out = np.empty_like(trace)
    for i in range(len(trace)):
        out[i] = trace[i] - np.median(trace[max(0, i - half):i + half + 1])
    return out


def remove_baseline_at_once(trace):
    half = SPAN // 2
    ends = np.pad(trace, half, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(ends, SPAN)
    return trace - np.partition(windows, half, axis=1)[:, half]


class Stream(IterableDataset):
    def __init__(self, path, early, transform):
        self.path, self.early, self.transform = path, early, transform

    def __iter__(self):
        info = get_worker_info()
        rng = np.random.default_rng(1000 + (info.id if info else 0))
        trace = np.fromfile(self.path, np.float32)
        while True:
            at = int(rng.integers(0, len(trace) - WINDOW))
            x = self.transform(trace[at:at + WINDOW])
            label = self.early[at + WINDOW - 20] > self.early[at + 20]
            yield torch.from_numpy(x)[None], np.float32(label)


class BeatNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.ModuleList([nn.Conv1d(a, b, 7, stride=2, padding=3) for a, b in [(1, 12), (12, 16), (16, 24)]])
        self.rnn = nn.GRU(24, 24, batch_first=True)
        self.out = nn.Linear(24, 1)

    def forward(self, x):
        for conv in self.conv:
            x = torch.relu(conv(x))
        x = nn.functional.avg_pool1d(x, 4)
        return self.out(self.rnn(x.transpose(1, 2))[0].amax(1)).squeeze(1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--vectorised", action="store_true")
    ap.add_argument("--steps", type=int, default=120)
    args = ap.parse_args()
    torch.manual_seed(61)
    with tempfile.TemporaryDirectory(prefix="holter") as folder:
        path = os.path.join(folder, "trace.f32")
        early = holter(path, 400000)
        stream = Stream(path, early, remove_baseline_at_once if args.vectorised else remove_baseline)
        loader = DataLoader(stream, batch_size=16, num_workers=2)
        net = BeatNet()
        opt = torch.optim.Adam(net.parameters(), 3e-3)
        began, mean = time.perf_counter(), 0.7
        for step, (x, label) in enumerate(itertools.islice(loader, args.steps), 1):
            loss = nn.functional.binary_cross_entropy_with_logits(net(x), label)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            mean = 0.95 * mean + 0.05 * loss.item()
            if step % 25 == 0:
                print("step %d: loss %.4f" % (step, mean), flush=True)
        took = time.perf_counter() - began
        print("%d steps, %.1f s, %.2f ms each" % (args.steps, took, 1e3 * took / args.steps))


if __name__ == "__main__":
    main()
