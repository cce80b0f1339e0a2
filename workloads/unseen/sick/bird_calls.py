# truth: fd_leak
# about: every clip is unpacked into a scratch file of tempfile.mkstemp(), which gives an open descriptor beside the name; the file is removed, the descriptor is never closed, so the process has one more with every clip it reads
# cure: --tidy
# gain: none
# needs: torch numpy
"""Tells birds by their calls: packed clips, unpacked to a scratch wave file, spectrogram, small network."""
import argparse
import os
import shutil
import tempfile
import time
import wave
import zlib

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

RATE, SECONDS, SPECIES = 8000, 1, 6


def record(folder, count):
    rng = np.random.default_rng(31)
    names = []
    t = np.arange(RATE * SECONDS) / RATE
    for k in range(count):
        bird = k % SPECIES
        call = np.sin(2 * np.pi * (600 + 400 * bird) * t + 4 * np.sin(2 * np.pi * (3 + bird) * t))
        sound = (call * 8000 + rng.normal(0, 3000, len(t))).astype("<i2")
        names.append(os.path.join(folder, f"{k:04d}.{bird}.z"))
        with open(names[-1], "wb") as f:
            f.write(zlib.compress(sound.tobytes(), 1))
    return names


class Clips(Dataset):
    def __init__(self, names, scratch, tidy):
        self.names, self.scratch, self.tidy = names, scratch, tidy

    def __len__(self):
        return len(self.names)

    def unpack(self, name):
        with open(name, "rb") as f:
            sound = zlib.decompress(f.read())
        fd, path = tempfile.mkstemp(suffix=".wav", dir=self.scratch)
        if self.tidy:
            os.close(fd)
        with wave.open(path, "wb") as out:
            out.setnchannels(1)
            out.setsampwidth(2)
            out.setframerate(RATE)
            out.writeframes(sound)
        return path

    def __getitem__(self, i):
        path = self.unpack(self.names[i])
        with wave.open(path, "rb") as clip:
            sound = np.frombuffer(clip.readframes(clip.getnframes()), "<i2")
        os.remove(path)
        return torch.from_numpy(sound.astype(np.float32) / 32768), int(self.names[i].split(".")[-2])


class Ear(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(256))
        self.net = nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(64, 192, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
            nn.Linear(192, SPECIES))

    def forward(self, sound):
        spec = torch.stft(sound, 256, 128, window=self.window, return_complex=True).abs()
        return self.net(torch.log1p(spec).unsqueeze(1))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--tidy", action="store_true")
    ap.add_argument("--epochs", type=int, default=4)
    a = ap.parse_args()
    torch.manual_seed(6)
    folder = tempfile.mkdtemp(prefix="bird_calls_")
    try:
        loader = DataLoader(Clips(record(folder, 180), folder, a.tidy), batch_size=8, shuffle=True, drop_last=True)
        model = Ear()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        begin, steps = time.perf_counter(), 0
        for epoch in range(a.epochs):
            total = 0.0
            for sound, bird in loader:
                loss = nn.functional.cross_entropy(model(sound), bird)
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
                total = total + loss.detach()
                steps += 1
            print(f"epoch {epoch}: loss {float(total) / len(loader):.3f}")
        took = time.perf_counter() - begin
        print(f"{steps} steps, {took:.2f} s, {1e3 * took / steps:.1f} ms a step, "
              f"{len(os.listdir('/proc/self/fd'))} descriptors")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
