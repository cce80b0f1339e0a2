# truth: epoch_boundary_stall
# about: an epoch is only a handful of batches, and the loader starts its workers anew for each, every one of them reading its catalogue again before the first batch comes
# advice: persistent_workers
# cure: --persistent
# gain: run
# env: OMP_NUM_THREADS=1
# needs: torch numpy cores:2
"""Counts visits of bees in clips of hive microphones.

The season is small, so it is gone through many times. Clips are raw 16 bit files; a catalogue
in JSON lists for each clip its hive, time, gain and the visits that a person has marked.
"""
import argparse
import json
import os
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info

CLIP = 4096
WINDOW, HOP = 256, 32
BANDS = WINDOW // 2 + 1


def record_season(folder, clips, marks, seed):
    rng = np.random.default_rng(seed)
    catalogue = []
    time = np.arange(CLIP)
    for number in range(clips):
        visits = int(rng.integers(0, 8))
        sound = rng.normal(0, 300, CLIP)
        for begin in rng.integers(0, CLIP - 512, size=visits):
            sound[begin:begin + 512] += 2500 * np.sin(time[:512] * 0.22) * np.hanning(512)
        name = f"clip{number:03}.raw"
        sound.astype("<i2").tofile(os.path.join(folder, name))
        catalogue.append({"file": name, "hive": number % 7, "gain": float(rng.uniform(0.8, 1.2)), "visits": visits,
                          "marks": [{"at": int(at), "by": "ab", "sure": round(float(sure), 3)}
                                    for at, sure in zip(rng.integers(0, CLIP, marks), rng.random(marks))]})
    with open(os.path.join(folder, "catalogue.json"), "w") as out:
        json.dump(catalogue, out)


def spectrogram(sound):
    """Log power by band and moment."""
    frames = np.lib.stride_tricks.sliding_window_view(sound, WINDOW)[::HOP]
    power = np.abs(np.fft.rfft(frames * np.hanning(WINDOW), axis=1))
    return np.log1p(power).astype(np.float32).T


class Clips(Dataset):
    """Clips with the visits in them. The catalogue is read where the clips are."""

    def __init__(self, folder, clips):
        self.folder = folder
        self.clips = clips
        self.catalogue = None

    def open(self):
        with open(os.path.join(self.folder, "catalogue.json")) as source:
            self.catalogue = json.load(source)

    def __len__(self):
        return self.clips

    def __getitem__(self, number):
        if self.catalogue is None:
            self.open()
        entry = self.catalogue[number]
        sound = np.fromfile(os.path.join(self.folder, entry["file"]), "<i2").astype(np.float32)
        bands = torch.from_numpy(spectrogram(sound * (entry["gain"] / 1000.0)).copy())
        return bands, torch.tensor(float(entry["visits"]))


def open_in_worker(_):
    get_worker_info().dataset.open()


class Ear(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(BANDS, 32, 5, padding=2), nn.ReLU(),
            nn.Conv1d(32, 32, 5, stride=2, padding=2), nn.ReLU(),
            nn.Conv1d(32, 32, 5, stride=2, padding=2), nn.ReLU())
        self.count = nn.Linear(32, 1)

    def forward(self, bands):
        return self.count(self.layers(bands).mean(dim=2)).squeeze(1)


def one_epoch(model, loader, optimizer):
    total = 0.0
    for bands, visits in loader:
        optimizer.zero_grad()
        loss = nn.functional.smooth_l1_loss(model(bands), visits)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clips", type=int, default=160)
    parser.add_argument("--marks", type=int, default=600)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=48)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--persistent", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(8)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="hives") as folder:
        record_season(folder, args.clips, args.marks, seed=8)
        loader = DataLoader(Clips(folder, args.clips), batch_size=args.batch, shuffle=True, num_workers=args.workers,
                            worker_init_fn=open_in_worker if args.workers else None,
                            persistent_workers=args.persistent)
        model = Ear()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        for epoch in range(args.epochs):
            loss = one_epoch(model, loader, optimizer)
            if epoch % 6 == 5:
                print(f"epoch {epoch + 1}: {loss:.4f}")


if __name__ == "__main__":
    main()
