# truth: preprocessing_bound
# about: the transform takes the baseline wander out of an electrocardiogram with a running median in pure Python, one sorted window per sample; the workers already fill all cores, so only a cheaper transform helps
# also: data_loading_bound cpu_saturated
# cure: --filter numpy
# whatif: transform=31
# needs: torch
"""Beat classification on long-term electrocardiograms: filter, normalise, then a small convolutional net with attention pooling."""
import argparse
import os
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

LENGTH = 1080
WINDOW = 109


def baseline_listed(signal):
    """Running median over WINDOW samples, the edges repeated."""
    half = WINDOW // 2
    values = [float(v) for v in signal]
    padded = [values[0]] * half + values + [values[-1]] * half
    medians = []
    for i in range(len(values)):
        window = sorted(padded[i:i + WINDOW])
        medians.append(window[half])
    return np.array(medians, dtype=np.float32)


def baseline_strided(signal):
    half = WINDOW // 2
    padded = np.pad(signal, half, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)
    # The wander is slow: every eighth window is enough, in between a line.
    places = np.arange(0, len(signal), 8)
    return np.interp(np.arange(len(signal)), places, np.median(windows[places], axis=1)).astype(np.float32)


class Clean:
    def __init__(self, baseline):
        self.baseline = baseline

    def __call__(self, signal):
        signal = signal - self.baseline(signal)
        return torch.from_numpy(signal / (signal.std() + 1e-6)).unsqueeze(0)


class Holter(Dataset):
    def __init__(self, count, transform):
        generator = np.random.default_rng(5)
        self.kinds = torch.from_numpy(generator.integers(0, 3, count))
        t = np.arange(LENGTH) / 360.0
        self.signals = np.empty((count, LENGTH), np.float32)
        for i, kind in enumerate(self.kinds.tolist()):
            rate = (1.0, 1.7, 2.6)[kind] + generator.normal(0, 0.1)
            phase = (t * rate + generator.random()) % 1.0
            beat = np.exp(-((phase - 0.4) / 0.03) ** 2) + 0.25 * np.exp(-((phase - 0.65) / 0.07) ** 2)
            wander = 0.8 * np.sin(2 * np.pi * 0.3 * t + generator.random() * 6)
            self.signals[i] = beat + wander + 0.05 * generator.standard_normal(LENGTH)
        self.transform = transform

    def __len__(self):
        return len(self.kinds)

    def __getitem__(self, i):
        return self.transform(self.signals[i]), self.kinds[i]


class BeatNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv1d(1, 24, 9, stride=3), nn.GELU(), nn.Conv1d(24, 32, 7, stride=2), nn.GELU())
        self.attention = nn.Conv1d(32, 1, 1)
        self.head = nn.Linear(32, 3)

    def forward(self, x):
        x = self.features(x)
        weight = torch.softmax(self.attention(x), dim=-1)
        return self.head((x * weight).sum(-1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--filter", choices=("plain", "numpy"), default="plain")
    options = parser.parse_args()
    torch.manual_seed(5)
    torch.set_num_threads(1)
    transform = Clean(baseline_listed if options.filter == "plain" else baseline_strided)
    cores = len(os.sched_getaffinity(0))
    loader = DataLoader(Holter(3200, transform), batch_size=32, shuffle=True, num_workers=cores)
    model = BeatNet()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    begin, right = time.perf_counter(), 0
    for signals, kinds in loader:
        scores = model(signals)
        loss = nn.functional.cross_entropy(scores, kinds)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        right += int((scores.argmax(1) == kinds).sum())
    print(f"accuracy {right / 3200:.3f}")
    print(f"{len(loader)} steps, {(time.perf_counter() - begin) / len(loader) * 1e3:.1f} ms each")


if __name__ == "__main__":
    main()
