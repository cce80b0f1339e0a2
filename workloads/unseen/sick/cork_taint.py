# truth: preprocessing_bound
# about: the baseline of every chromatogram (rolling minimum, then rolling mean) is found point by point in Python; two workers keep both cores busy with it and still the net waits for traces
# also: data_loading_bound
# cure: cured/cork_taint.py
# whatif: transform=18
# env: OMP_NUM_THREADS=1
# needs: torch numpy
"""Finds corked bottles: trichloroanisole peaks in gas chromatograms of wine."""
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

POINTS = 1280
HALF = 40

torch.manual_seed(77)


class RemoveBaseline:
    """Takes the slow drift of the column away and scales to the largest peak."""

    def __init__(self, half=HALF):
        self.half = half

    def __call__(self, trace):
        half, n = self.half, len(trace)
        padded = [float(v) for v in np.pad(trace, half, mode="edge")]
        lowest = []
        for i in range(n):
            lowest.append(min(padded[i:i + 2 * half + 1]))
        padded = [lowest[0]] * half + lowest + [lowest[-1]] * half
        baseline = []
        for i in range(n):
            baseline.append(sum(padded[i:i + 2 * half + 1]) / (2 * half + 1))
        flat = trace - np.array(baseline, dtype=np.float32)
        return flat / max(float(flat.max()), 1e-6)


class Bottles(Dataset):
    def __init__(self, count, transform=None, seed=77):
        rng = np.random.default_rng(seed)
        self.transform = transform
        self.corked = rng.random(count) < 0.5
        time = np.arange(POINTS, dtype=np.float32)
        self.traces = np.empty((count, POINTS), np.float32)
        for n in range(count):
            drift = rng.uniform(1, 3) + rng.uniform(0, 2) * time / POINTS
            peaks = sum(rng.uniform(0.5, 3) * np.exp(-0.5 * ((time - c) / rng.uniform(2, 5)) ** 2)
                        for c in rng.uniform(20, POINTS - 20, 6))
            if self.corked[n]:
                peaks = peaks + 0.7 * np.exp(-0.5 * ((time - 824) / 3) ** 2)
            self.traces[n] = drift + peaks + rng.normal(0, 0.03, POINTS)

    def __len__(self):
        return len(self.traces)

    def __getitem__(self, n):
        trace = self.traces[n]
        if self.transform is not None:
            trace = self.transform(trace)
        return torch.from_numpy(trace)[None], float(self.corked[n])


net = nn.Sequential(
    nn.Conv1d(1, 24, 9, stride=4, padding=4), nn.ReLU(),
    nn.Conv1d(24, 48, 7, stride=2, padding=3), nn.ReLU(),
    nn.Conv1d(48, 48, 5, padding=2), nn.ReLU(),
    nn.AdaptiveMaxPool1d(8), nn.Flatten(), nn.Linear(48 * 8, 1),
)


def run(epochs=3, batch=16):
    bottles = Bottles(batch * 70, RemoveBaseline())
    loader = DataLoader(bottles, batch_size=batch, shuffle=True, num_workers=2, persistent_workers=True)
    adam = torch.optim.Adam(net.parameters(), lr=1e-3)
    loss_fn = nn.BCEWithLogitsLoss()
    for epoch in range(epochs):
        hits = 0
        for traces, corked in loader:
            adam.zero_grad()
            score = net(traces).squeeze(1)
            loss = loss_fn(score, corked.float())
            loss.backward()
            adam.step()
            hits += ((score > 0) == (corked > 0.5)).sum().item()
        print(f"epoch {epoch}: {hits / len(bottles):.1%} of the bottles right")


if __name__ == "__main__":
    run()
