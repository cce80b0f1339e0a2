# truth: epoch_boundary_stall
# about: an epoch is only ten steps long, and at each one three loader workers are forked anew and compute their bank of room responses again
# also: data_loading_bound too_many_workers preprocessing_bound
# cure: --keep-workers
# gain: run
# needs: torch
"""Spoken keywords with room reverberation; few recordings, many epochs."""
import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info

RATE, KEYWORDS = 4000, 8


class Keywords(Dataset):
    def __init__(self, count=160):
        rng = np.random.default_rng(2)
        self.labels = rng.integers(0, KEYWORDS, count)
        t = np.arange(RATE) / RATE
        self.clips = np.stack([np.sin(2 * np.pi * (200 + 90 * k) * t * (1 + 0.3 * t)) for k in self.labels])
        self.clips = (self.clips + 0.3 * rng.standard_normal(self.clips.shape)).astype(np.float32)
        self.rooms = None

    def build_rooms(self, count=24):
        """spectra of decaying noise, one per room"""
        rng = np.random.default_rng(9)
        t = np.arange(4 * RATE) / RATE
        self.rooms = []
        for _ in range(count):
            decay = np.exp(-t / rng.uniform(0.05, 0.4))
            tail = sum(rng.standard_normal(len(t)) * decay**k for k in range(1, 7))
            self.rooms.append(np.fft.rfft(tail[:RATE] / np.abs(tail).max(), 2 * RATE))

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        room = self.rooms[(i * 7) % len(self.rooms)]
        wet = np.fft.irfft(np.fft.rfft(self.clips[i], 2 * RATE) * room)[:RATE]
        return torch.from_numpy((0.7 * self.clips[i] + 0.3 * wet).astype(np.float32)), int(self.labels[i])


def prepare(_):
    get_worker_info().dataset.build_rooms()


class Spotter(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(1, 16, 40, stride=10), nn.BatchNorm1d(16), nn.ReLU(),
            nn.Conv1d(16, 32, 9, stride=2), nn.ReLU(), nn.AdaptiveAvgPool1d(8), nn.Flatten(),
            nn.Linear(256, KEYWORDS),
        )

    def forward(self, wave):
        return self.layers(wave[:, None])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep-workers", action="store_true")
    parser.add_argument("--epochs", type=int, default=40)
    args = parser.parse_args()
    torch.manual_seed(4)
    loader = DataLoader(Keywords(), batch_size=16, shuffle=True, num_workers=3, worker_init_fn=prepare,
                        persistent_workers=args.keep_workers)
    model = Spotter()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for epoch in range(args.epochs):
        right = 0
        for wave, label in loader:
            scores = model(wave)
            loss = nn.functional.cross_entropy(scores, label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += (scores.argmax(1) == label).sum().item()
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1}: {right / len(loader.dataset):.2f}")


if __name__ == "__main__":
    main()
