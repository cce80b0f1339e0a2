"""Species of crickets by their chirps.  Service job: train, report, exit."""
import argparse
import dataclasses
import functools
import time
import typing

import numpy as np
import torch
import torch.nn as nn


@dataclasses.dataclass(frozen=True)
class JobSpec:
    recordings: int = 240
    species: int = 8
    samples: int = 16384
    window: int = 256
    batch: int = 12
    steps: int = 380
    seed: int = 19


class ChirpStore:
    def __init__(self, spec: JobSpec):
        rng = np.random.default_rng(spec.seed)
        t = np.arange(spec.samples, dtype=np.float32) / 16000
        self.labels = rng.integers(0, spec.species, spec.recordings)
        carrier = 2000 + 500 * self.labels[:, None] + rng.normal(0, 60, (spec.recordings, 1))
        pulses = np.sin(2 * np.pi * (12 + 3 * self.labels[:, None]) * t) > 0
        wave = np.sin(2 * np.pi * carrier * t) * pulses + 0.2 * rng.standard_normal((spec.recordings, spec.samples))
        self.waves = torch.from_numpy(wave.astype(np.float32))
        self.hann = torch.hann_window(spec.window)
        self.spec = spec

    @functools.lru_cache(maxsize=64)
    def spectrogram(self, index: int, pitch: float) -> torch.Tensor:
        wave = self.waves[index]
        where = (torch.arange(len(wave)) * pitch).long().clamp_(max=len(wave) - 1)
        s = torch.stft(wave[where], self.spec.window, 32, window=self.hann, return_complex=True)
        return torch.log1p(s.abs())


class ChirpNet(nn.Module):
    def __init__(self, species: int):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 5, stride=3), nn.ReLU(), nn.Conv2d(16, 24, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d((8, 1)))
        self.classify = nn.Linear(24 * 8, species)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classify(self.features(x).flatten(1))


def batches(store: ChirpStore, spec: JobSpec) -> typing.Iterator[typing.Tuple[torch.Tensor, torch.Tensor]]:
    rng = np.random.default_rng(spec.seed + 1)
    for _ in range(spec.steps):
        chosen = rng.integers(0, spec.recordings, spec.batch)
        pitches = rng.uniform(0.95, 1.05, spec.batch)
        x = torch.stack([store.spectrogram(int(i), float(p)) for i, p in zip(chosen, pitches)])
        yield x.unsqueeze(1), torch.as_tensor(store.labels[chosen])


def run(spec: JobSpec) -> float:
    torch.manual_seed(spec.seed)
    torch.set_num_threads(2)
    store, net = ChirpStore(spec), ChirpNet(spec.species)
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    hits = 0
    for x, y in batches(store, spec):
        logits = net(x)
        loss = nn.functional.cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        hits += (logits.argmax(1) == y).sum().item()
    return hits / (spec.steps * spec.batch)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=JobSpec.steps)
    began, cpu = time.perf_counter(), time.process_time()
    spec = JobSpec(steps=parser.parse_args().steps)
    print("accuracy %.3f" % run(spec))
    print("%.1f s, %.1f s of CPU" % (time.perf_counter() - began, time.process_time() - cpu))
