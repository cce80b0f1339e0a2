# truth: evaluation_heavy
# about: all 2000 held-out recordings are listened to again after every five steps, which takes several times as long as those five steps
# cure: --listen-every 60
# gain: run
# whatif: evaluation=12
# needs: torch numpy
"""Names the bell from half a second of sound: strided 1-D convolutions, a trainer with hooks."""
import argparse
import time

import numpy as np
import torch
from torch import nn

BELLS, LENGTH = 12, 2048


def tower(count, rng):
    which = rng.integers(BELLS, size=count)
    t = np.arange(LENGTH, dtype=np.float32) / 8000
    tone = (300 + 45 * which)[:, None].astype(np.float32)
    wave = sum(np.sin(2 * np.pi * tone * ratio * t + rng.uniform(0, 6, (count, 1)).astype(np.float32)) / k
               for k, ratio in enumerate((1.0, 2.0, 2.4, 3.0), 1))
    wave = wave * np.exp(-4 * t) + rng.normal(0, 0.7, (count, LENGTH)).astype(np.float32)
    return torch.from_numpy(wave.astype(np.float32)[:, None]), torch.from_numpy(which)


def ear():
    return nn.Sequential(
        nn.Conv1d(1, 24, 31, stride=4, padding=15), nn.ReLU(),
        nn.Conv1d(24, 48, 15, stride=4, padding=7), nn.ReLU(),
        nn.Conv1d(48, 64, 7, stride=2, padding=3), nn.ReLU(),
        nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(64, BELLS))


class Trainer:
    def __init__(self, net, data, held_out, every):
        self.net, self.data, self.held_out, self.every = net, data, held_out, every
        self.optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3)
        self.dice = torch.Generator().manual_seed(8)
        self.hooks = [self.listen]
        self.best = 0.0

    def listen(self, step):
        if step % self.every:
            return
        sounds, names = self.held_out
        self.net.eval()
        with torch.no_grad():
            right = sum((self.net(s).argmax(1) == n).sum().item() for s, n in zip(sounds.split(100), names.split(100)))
        self.net.train()
        self.best = max(self.best, right / len(names))

    def fit(self, steps):
        sounds, names = self.data
        for step in range(1, steps + 1):
            pick = torch.randint(len(names), (32,), generator=self.dice)
            loss = nn.functional.cross_entropy(self.net(sounds[pick]), names[pick])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            for hook in self.hooks:
                hook(step)
        return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--listen-every", type=int, default=5)
    options = parser.parse_args()
    torch.manual_seed(5)
    rng = np.random.default_rng(5)
    trainer = Trainer(ear(), tower(1200, rng), tower(2000, rng), options.listen_every)
    began, cpu = time.perf_counter(), time.process_time()
    loss = trainer.fit(options.steps)
    took = time.perf_counter() - began
    print(f"loss {loss:.3f}, best {trainer.best:.3f}; {1000 * took / options.steps:.2f} ms a step, "
          f"{time.process_time() - cpu:.1f} s of CPU, {took:.2f} s")


if __name__ == "__main__":
    main()
