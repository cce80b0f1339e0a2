# truth: none
# about: one worker crops and mirrors fronds from a memory-mapped file in a small part of the time that a step takes; batches are always ready
# env: OMP_NUM_THREADS=1
# needs: torch numpy
"""Tells fern species apart by their fronds."""
import os
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SPECIES = 12
SIDE = 56


def press(path, count, seed):
    """The herbarium as one array on the disk."""
    rng = np.random.default_rng(seed)
    species = rng.integers(0, SPECIES, count)
    y, x = np.mgrid[0:64, 0:64].astype(np.float32)
    sheets = np.lib.format.open_memmap(path, mode="w+", dtype=np.uint8, shape=(count, 64, 64))
    for n, kind in enumerate(species):
        frond = np.sin(x * (0.2 + 0.05 * kind)) * np.exp(-((y - 32) / (8 + kind)) ** 2)
        sheets[n] = np.clip(90 + 80 * frond + rng.normal(0, 12, (64, 64)), 0, 255)
    sheets.flush()
    return species


class Herbarium(Dataset):
    def __init__(self, path, species):
        self.sheets = np.load(path, mmap_mode="r")
        self.species = torch.from_numpy(species)

    def __len__(self):
        return len(self.species)

    def __getitem__(self, n):
        top, left = (n * 7) % 8, (n * 3) % 8
        crop = np.array(self.sheets[n, top:top + SIDE, left:left + SIDE])
        if n % 2:
            crop = crop[:, ::-1].copy()
        return torch.from_numpy(crop), self.species[n]


class FrondNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 24, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(24, 48, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(48, 64, 3, padding=1), nn.ReLU())
        self.decide = nn.Linear(64, SPECIES)

    def forward(self, sheets):
        return self.decide(self.features(sheets.unsqueeze(1).float() / 255).mean((2, 3)))


def fit(path):
    species = press(path, 1600, seed=9)
    loader = DataLoader(Herbarium(path, species), batch_size=32, shuffle=True, num_workers=1, persistent_workers=True)
    net = FrondNet()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    for epoch in range(3):
        loss_sum = 0.0
        for sheets, kind in loader:
            loss = nn.functional.cross_entropy(net(sheets), kind)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss_sum += loss.item()
        print(f"epoch {epoch}: loss {loss_sum / len(loader):.3f}")


if __name__ == "__main__":
    torch.manual_seed(9)
    with tempfile.TemporaryDirectory() as folder:
        fit(os.path.join(folder, "sheets.npy"))
