# truth: too_many_workers
# about: the scans lie in memory and a sample is only a slice of them, but ten workers on two cores pickle every batch of 11 MB through a pipe to the trainer, which unpickles it
# also: data_loading_bound oversubscribed epoch_boundary_stall collate_bound
# cure: --workers 0
# whatif: workers=0
# advice: num_workers
# needs: torch numpy
"""Joint angles of a marionette from depth scans; scans differ in size, so a batch stays a list of arrays."""
import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

JOINTS = 9


class Scans(Dataset):
    def __init__(self, count, rng):
        self.frames = rng.normal(0, 1, (count, 192, 256)).astype(np.float32)
        self.angles = rng.uniform(-1, 1, (count, JOINTS)).astype(np.float32)
        self.heights = rng.integers(150, 192, count)
        self.frames[:, 40:90, 60:120] += self.angles[:, :1, None]

    def __len__(self):
        return len(self.frames)

    def __getitem__(self, i):
        return self.frames[i, :self.heights[i]], self.angles[i]


def as_lists(samples):
    return [s for s, _ in samples], np.stack([a for _, a in samples])


class Posture(nn.Module):
    def __init__(self):
        super().__init__()
        self.grid = nn.AdaptiveAvgPool2d((12, 16))
        self.head = nn.Sequential(nn.Linear(192, 256), nn.ReLU(), nn.Linear(256, JOINTS))

    def forward(self, scans):
        cells = torch.stack([self.grid(torch.from_numpy(s)[None]).flatten() for s in scans])
        return self.head(cells)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=12)
    options = parser.parse_args()
    torch.manual_seed(12)
    scans = Scans(1280, np.random.default_rng(12))
    extra = {"persistent_workers": True} if options.workers else {}
    loader = DataLoader(scans, batch_size=64, shuffle=True, collate_fn=as_lists, num_workers=options.workers, **extra)
    model = Posture()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    steps, began, cpu = 0, time.perf_counter(), time.process_time()
    for _ in range(options.epochs):
        for frames, angles in loader:
            loss = nn.functional.mse_loss(model(frames), torch.from_numpy(angles))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
    took = time.perf_counter() - began
    print(f"loss {loss.item():.3f}; {steps} steps, {1000 * took / steps:.2f} ms each, {time.process_time() - cpu:.1f} s of CPU, {took:.2f} s")


if __name__ == "__main__":
    main()
