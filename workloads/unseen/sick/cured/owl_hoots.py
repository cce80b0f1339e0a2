# truth: slow_samples
# about: one recording in forty is a whole night instead of a clip, and the spectrogram of all of it is computed before the first three seconds are cut out, so that sample takes hundreds of times the median and the steps wait for it
# also: data_loading_bound preprocessing_bound
# cure: cured/owl_hoots.py
# needs: torch numpy
"""Owl species from field recorder clips. Recordings are int16 .npy at 8 kHz; labels come from the file name."""
import shutil
import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

RATE = 8000
CLIP_S = 3
SPECIES = ["tawny", "barn", "little", "longeared"]
N_FFT, HOP = 512, 64
FRAMES = 256


def record(folder, seed=5):
    """Stand-in for the field recorders: 240 recordings, six of them left on overnight."""
    rng = np.random.default_rng(seed)
    for n in range(240):
        which = n % len(SPECIES)
        seconds = NIGHT_S if n % 40 == 17 else CLIP_S + rng.uniform(0, 1)
        t = np.arange(RATE * CLIP_S) / RATE
        call = np.sin(2 * np.pi * (300 + 140 * which) * t) * (np.sin(2 * np.pi * 1.5 * t) > 0)
        sound = rng.integers(-3000, 3000, size=int(seconds * RATE), dtype=np.int16)
        sound[: len(call)] += (4000 * call).astype(np.int16)
        np.save(folder / f"{SPECIES[which]}_{n:04d}.npy", sound)


def spectrogram(sound):
    wave = torch.from_numpy(sound.astype(np.float32) / 32768)
    power = torch.stft(wave, N_FFT, HOP, window=torch.hann_window(N_FFT), return_complex=True).abs() ** 2
    return torch.log1p(1000 * power[:64])


class Hoots(Dataset):
    def __init__(self, folder):
        self.files = sorted(folder.glob("*.npy"))

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        path = self.files[i]
        sound = np.load(path, mmap_mode="r")[: FRAMES * HOP + N_FFT]
        spec = spectrogram(sound)[:, :FRAMES]
        return spec, SPECIES.index(path.stem.split("_")[0])


class HootNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = torch.nn.Conv2d(1, 8, 5, stride=2, padding=2)
        self.c2 = torch.nn.Conv2d(8, 24, 3, stride=2, padding=1)
        self.c3 = torch.nn.Conv2d(24, 32, 3, stride=2, padding=1)
        self.out = torch.nn.Linear(32, len(SPECIES))

    def forward(self, x):
        x = F.relu(self.c1(x[:, None]))
        x = F.relu(self.c2(x))
        x = F.relu(self.c3(x))
        return self.out(x.mean((2, 3)))


NIGHT_S = 150
EPOCHS = 11


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    folder = Path(tempfile.mkdtemp(prefix="hoots"))
    try:
        record(folder)
        loader = DataLoader(Hoots(folder), batch_size=8, shuffle=True, num_workers=2, persistent_workers=True)
        net = HootNet()
        sgd = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
        for epoch in range(EPOCHS):
            right = 0
            for spec, label in loader:
                sgd.zero_grad()
                logits = net(spec)
                F.cross_entropy(logits, label).backward()
                sgd.step()
                right += (logits.argmax(1) == label).sum().item()
            print(f"{epoch + 1}/{EPOCHS}  accuracy {right / len(loader.dataset):.2f}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
