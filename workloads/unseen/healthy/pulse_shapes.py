# truth: none
# about: healthy: a convolutional network over pulse waves; two threads compute, one worker reads, filters and scales the batches well ahead of it
# env: OPENBLAS_NUM_THREADS=2
# needs: torch numpy cores:2
"""Stiffness of the arteries from the shape of the pulse wave at the finger."""
import argparse
import os
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

TICKS, RAW, BATCH = 320, 2560, 64


def record(path, people, seed):
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 1, RAW, dtype=np.float32)
    stiff = rng.uniform(0, 1, (people, 1)).astype(np.float32)
    wave = np.exp(-((t - 0.25) / 0.1) ** 2) + (0.3 + 0.5 * stiff) * np.exp(-((t - 0.6 + 0.2 * stiff) / 0.12) ** 2)
    wave = wave + 0.03 * rng.standard_normal(wave.shape, dtype=np.float32)
    np.save(path, np.concatenate([wave, stiff], 1).astype(np.float32))


class Pulses(Dataset):
    def __init__(self, path):
        self.rows = np.load(path, mmap_mode="r")

    def __len__(self):
        return len(self.rows) // BATCH

    def __getitem__(self, b):
        rows = np.array(self.rows[b * BATCH:(b + 1) * BATCH])
        spectrum = np.fft.rfft(rows[:, :RAW], axis=1)
        wave = np.fft.irfft(spectrum[:, :TICKS // 2 + 1], TICKS, axis=1).astype(np.float32)
        wave = (wave - wave.mean(1, keepdims=True)) / wave.std(1, keepdims=True)
        return torch.from_numpy(wave[:, None]), torch.from_numpy(rows[:, RAW].copy())


class Block(nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        self.a = nn.Conv1d(inside, outside, 7, padding=3)
        self.b = nn.Conv1d(outside, outside, 7, padding=3)

    def forward(self, x):
        x = torch.relu(self.a(x))
        return nn.functional.avg_pool1d(torch.relu(self.b(x)) + x, 2)


class Trainer:
    def __init__(self, path):
        self.loader = DataLoader(Pulses(path), batch_size=None, shuffle=True, num_workers=1, persistent_workers=True, prefetch_factor=4)
        self.model = nn.Sequential(Block(1, 32), Block(32, 64), Block(64, 96), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(96, 1))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)

    def epoch(self):
        total = 0.0
        for wave, stiff in self.loader:
            self.optimizer.zero_grad()
            loss = nn.functional.mse_loss(self.model(wave).squeeze(1), stiff)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(self.loader)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    a = parser.parse_args()
    torch.set_num_threads(2)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "pulses.npy")
        record(path, 45 * BATCH, 1)
        trainer = Trainer(path)
        for n in range(a.epochs):
            print(f"epoch {n}: {trainer.epoch():.5f}")
        del trainer


if __name__ == "__main__":
    main()
