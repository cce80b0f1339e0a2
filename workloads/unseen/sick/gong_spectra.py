# truth: oversubscribed
# about: the trainer and both of its workers compute with twelve threads each, as on the large machine the number was copied from; here there are two cores
# also: data_loading_bound preprocessing_bound too_many_workers
# cure: --threads 1
# whatif: threads=1
# needs: torch numpy
"""Where was the gong struck? Loudness pictures of recordings are made in the workers, a small net tells the ring."""
import argparse
import functools
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

RINGS, LONG = 6, 65536


class Strikes(Dataset):
    def __init__(self, count):
        rng = np.random.default_rng(31)
        self.rings = rng.integers(RINGS, size=count)
        self.seeds = rng.integers(1 << 30, size=count)

    def __len__(self):
        return len(self.rings)

    def __getitem__(self, i):
        dice = torch.Generator().manual_seed(int(self.seeds[i]))
        t = torch.arange(LONG) / 44100.0
        wave = torch.randn(LONG, generator=dice) * 0.3
        for k in range(1, 5):
            wave += torch.sin(2 * torch.pi * (180 + 60 * self.rings[i]) * k * t) * torch.exp(-k * t)
        loud = torch.log1p(wave.abs() * 8)
        fine = torch.tanh(loud - loud.mean()) * torch.sqrt(loud + 1e-3)
        return fine.reshape(128, 512).reshape(128, 64, 8).mean(2), int(self.rings[i])


def set_up(threads, worker):
    torch.set_num_threads(threads)


class Ring(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Conv2d(1, 12, 5, stride=2, padding=2)
        self.more = nn.Conv2d(12, 24, 3, stride=2, padding=1)
        self.out = nn.Linear(24, RINGS)

    def forward(self, x):
        x = torch.nn.functional.gelu(self.mix(x[:, None]))
        return self.out(torch.nn.functional.gelu(self.more(x)).mean((2, 3)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=12)
    parser.add_argument("--steps", type=int, default=70)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(31)
    loader = DataLoader(Strikes(16 * options.steps), batch_size=16, num_workers=2, multiprocessing_context="spawn",
                        worker_init_fn=functools.partial(set_up, options.threads))
    net = Ring()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    began = None
    for pictures, rings in loader:
        began = began or time.perf_counter()
        loss = nn.functional.cross_entropy(net(pictures), rings)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    took = time.perf_counter() - began
    print(f"loss {loss.item():.3f}; {1000 * took / options.steps:.2f} ms a step, {took:.2f} s")


if __name__ == "__main__":
    main()
