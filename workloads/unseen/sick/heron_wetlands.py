# truth: memory_leak
# about: the data set keeps every clip and spectrogram it ever made in a dict, keyed by recording and random start, so that no key ever comes again and nothing is ever dropped
# also: memory_pressure
# needs: torch numpy
"""Heron, bittern or egret: call classifier for the recorders in the reed beds.

Clips are cut at random places from the long recordings and turned into log spectrograms.
"""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, RandomSampler

RATE = 16000
CLIP = 2 * RATE
SPECIES = 5
WINDOW, HOP = 512, 256


def recordings(count=20, minutes=1.0, seed=21):
    rng = np.random.default_rng(seed)
    n = int(60 * minutes * RATE)
    t = np.arange(n, dtype=np.float32) / RATE
    out = []
    for i in range(count):
        kind = i % SPECIES
        call = np.sin(2 * np.pi * (300 + 220 * kind) * t) * (np.sin(2 * np.pi * (1.1 + kind) * t) > 0.3)
        out.append(((call * 0.3 + rng.normal(0, 0.1, n).astype(np.float32)) * 12000).astype(np.int16))
    return out, [i % SPECIES for i in range(count)]


class ReedBed(Dataset):
    def __init__(self, tapes, species, seed=8):
        self.tapes, self.species = tapes, species
        self.rng = np.random.default_rng(seed)
        self.window = np.hanning(WINDOW).astype(np.float32)
        self.made = {}

    def __len__(self):
        return len(self.tapes)

    def spectrogram(self, tape, start):
        key = (tape, start)
        if key not in self.made:
            wave = self.tapes[tape][start:start + CLIP].astype(np.float32) / 32768
            frames = np.lib.stride_tricks.sliding_window_view(wave, WINDOW)[::HOP] * self.window
            power = np.abs(np.fft.rfft(frames, axis=1)[:, :128]) ** 2
            spec = np.log(power + 1e-6).astype(np.float32)
            self.made[key] = (wave, torch.from_numpy(spec))
        return self.made[key][1]

    def __getitem__(self, tape):
        start = int(self.rng.integers(0, len(self.tapes[tape]) - CLIP))
        return self.spectrogram(tape, start)[None], self.species[tape]


def stage(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1, stride=2), nn.BatchNorm2d(b), nn.ReLU())


def main():
    torch.manual_seed(21)
    tapes, species = recordings()
    bed = ReedBed(tapes, species)
    loader = DataLoader(bed, batch_size=32, sampler=RandomSampler(bed, replacement=True, num_samples=32 * 110))
    net = nn.Sequential(stage(1, 16), stage(16, 32), stage(32, 64), stage(64, 128),
                        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, SPECIES))
    opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
    right = 0
    for n, (spec, who) in enumerate(loader, 1):
        logits = net(spec)
        loss = nn.functional.cross_entropy(logits, who)
        opt.zero_grad()
        loss.backward()
        opt.step()
        right += (logits.argmax(1) == who).sum().item()
        if n % 22 == 0:
            print(f"batch {n}: {right / (22 * 32):.3f}")
            right = 0


if __name__ == "__main__":
    main()
