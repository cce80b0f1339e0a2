# The same as wafer_sites.py beside the folder, with all sites of the lot in one file.
"""Predicts the yield of silicon wafers from the film measured at sixty sites of each."""
import os
import shutil
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SITES, VALUES, WAFERS, BATCH, EPOCHS = 60, 8, 240, 16, 44


def measure(folder):
    """The measuring station's lot in one file: wafer after wafer, site after site."""
    rng = np.random.default_rng(4)
    film = rng.normal(0, 1, (WAFERS, SITES, VALUES)).astype(np.float32)
    film.tofile(os.path.join(folder, "lot.dat"))
    return np.tanh(film[:, :20, 0].mean(1) + film[:, 20:, 3].std(1)).astype(np.float32)


class Wafers(Dataset):
    def __init__(self, folder, yields):
        self.lot = np.memmap(os.path.join(folder, "lot.dat"), np.float32, "r", shape=(len(yields), SITES, VALUES))
        self.yields = yields

    def __len__(self):
        return len(self.yields)

    def __getitem__(self, w):
        return torch.from_numpy(np.array(self.lot[w])), self.yields[w]


class Yield(nn.Module):
    def __init__(self):
        super().__init__()
        self.site = nn.Sequential(nn.Linear(VALUES, 32), nn.ReLU(), nn.Linear(32, 32))
        self.wafer = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, film):
        sites = self.site(film)
        return self.wafer(torch.cat([sites.mean(1), sites.amax(1)], 1)).squeeze(1)


def train(wafers):
    torch.manual_seed(4)
    loader = DataLoader(wafers, batch_size=BATCH, shuffle=True, num_workers=2, persistent_workers=True)
    model = Yield()
    optimizer = torch.optim.NAdam(model.parameters(), lr=2e-3)
    steps, error = 0, 0.0
    began = time.perf_counter()
    for epoch in range(EPOCHS):
        for film, wanted in loader:
            loss = nn.functional.mse_loss(model(film), wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            error += loss.item()
            steps += 1
    took = time.perf_counter() - began
    print("%d steps, mean error %.4f, %.1f ms per step" % (steps, error / steps, took / steps * 1e3))


def main():
    folder = tempfile.mkdtemp(prefix="wafers-")
    try:
        yields = measure(folder)
        train(Wafers(folder, yields))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
