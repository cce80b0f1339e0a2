# truth: epoch_boundary_stall
# about: an epoch is only six batches, and at each one the loader starts its two workers anew, each of which renders the whole drum kit again before its first loop
# also: data_loading_bound
# advice: persistent_workers
# cure: --persistent
# gain: run
# needs: torch numpy
"""groove2genre: guesses the genre of a one-bar drum loop. Loops are rendered from step patterns with a synthetic kit."""
import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

RATE, GENRES, STEPS = 4000, 6, 16

cfg = {"batch": 32, "loops": 192, "lr": 2e-3, "workers": 2, "voices": 10, "layers": 8}


def render_kit(voices, layers):
    """Every voice at several velocities: damped partials, added up in double precision."""
    rng = np.random.default_rng(1)
    t = np.arange(RATE // 2) / RATE
    kit = np.zeros((voices, layers, len(t)), np.float32)
    for v in range(voices):
        for l in range(layers):
            f = rng.uniform(60, 1900, 120)[:, None]
            d = rng.uniform(8, 60, 120)[:, None]
            kit[v, l] = (np.sin(2 * np.pi * f * t) * np.exp(-d * t * (1 + l / layers))).sum(0) / 120
    return kit


class Grooves(Dataset):
    kit = None

    def __init__(self, cfg):
        rng = np.random.default_rng(2)
        taste = rng.random((GENRES, cfg["voices"], STEPS)) ** 3
        self.genre = rng.integers(0, GENRES, cfg["loops"])
        self.pattern = rng.random((cfg["loops"], cfg["voices"], STEPS)) < taste[self.genre]
        self.layers = cfg["layers"]

    def __len__(self):
        return len(self.genre)

    def __getitem__(self, i):
        bar = np.zeros(RATE * 2, np.float32)
        hop = RATE // 8 - 32
        for voice, step in zip(*np.nonzero(self.pattern[i])):
            hit = Grooves.kit[voice, (i + step) % self.layers]
            at = step * hop // 2
            bar[at:at + len(hit)] += hit[:len(bar) - at]
        return torch.from_numpy(bar), int(self.genre[i])


def start_worker(_):
    torch.set_num_threads(1)
    Grooves.kit = render_kit(cfg["voices"], cfg["layers"])


def make_net():
    return nn.Sequential(nn.Conv1d(1, 12, 64, stride=16), nn.ReLU(), nn.Conv1d(12, 24, 9, stride=4), nn.ReLU(),
                         nn.AdaptiveAvgPool1d(16), nn.Flatten(), nn.Linear(24 * 16, GENRES))


def main(epochs, persistent):
    torch.manual_seed(5)
    torch.set_num_threads(1)
    loader = DataLoader(Grooves(cfg), cfg["batch"], shuffle=True, num_workers=cfg["workers"], worker_init_fn=start_worker,
                        persistent_workers=persistent)
    net = make_net()
    opt = torch.optim.Adam(net.parameters(), cfg["lr"])
    begin, n = time.perf_counter(), 0
    for epoch in range(epochs):
        good = 0
        for bar, genre in loader:
            out = net(bar[:, None])
            loss = nn.functional.cross_entropy(out, genre)
            opt.zero_grad()
            loss.backward()
            opt.step()
            good += (out.argmax(1) == genre).sum().item()
            n += 1
        if epoch % 5 == 0:
            print("epoch %d acc %.2f" % (epoch, good / cfg["loops"]))
    print("%d steps in %.2f s" % (n, time.perf_counter() - begin))


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=28)
    ap.add_argument("--persistent", action="store_true")
    a = ap.parse_args()
    main(a.epochs, a.persistent)
