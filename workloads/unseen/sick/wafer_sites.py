# truth: metadata_bound
# about: a wafer is a folder with 60 files of 32 bytes, one for each measured site; each sample lists the folder, asks for the size of every file and opens it, and that takes many times what the bytes take
# also: small_reads data_loading_bound preprocessing_bound
# cure: cured/wafer_sites.py
# needs: torch numpy
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
    """What the measuring station leaves behind: folder/wafer/site.dat."""
    rng = np.random.default_rng(4)
    film = rng.normal(0, 1, (WAFERS, SITES, VALUES)).astype(np.float32)
    for w in range(WAFERS):
        home = os.path.join(folder, "wafer%04d" % w)
        os.mkdir(home)
        for s in range(SITES):
            with open("%s/site%02d.dat" % (home, s), "wb", buffering=0) as file:
                file.write(film[w, s].tobytes())
    return np.tanh(film[:, :20, 0].mean(1) + film[:, 20:, 3].std(1)).astype(np.float32)


class Wafers(Dataset):
    def __init__(self, folder, yields):
        self.folder, self.yields = folder, yields

    def __len__(self):
        return len(self.yields)

    def __getitem__(self, w):
        home = os.path.join(self.folder, "wafer%04d" % w)
        film = np.zeros((SITES, VALUES), np.float32)
        for s, name in enumerate(sorted(os.listdir(home))):
            path = os.path.join(home, name)
            if not os.path.isfile(path) or os.path.getsize(path) != 4 * VALUES:
                continue  # the station was still writing
            with open(path, "rb", buffering=0) as file:
                film[s] = np.frombuffer(file.read(4 * VALUES), np.float32)
        return torch.from_numpy(film), self.yields[w]


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
