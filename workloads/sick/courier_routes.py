# truth: checkpoint_stall
# about: after every third step the trainer writes its whole state (a large table of street vectors and the optimizer's sums of it) to disk and syncs it, while the loop stands still
# cure: --save-every 30
# whatif: checkpoint=10
# gain: run
# needs: torch numpy
"""How long a courier's round takes, from the streets it passes, the hour and the load."""
import argparse
import os
import tempfile
import time
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Options:
    streets: int = 90_000
    stops: int = 24
    width: int = 48
    batch: int = 256
    steps: int = 120
    save_every: int = 3
    keep: int = 2
    seed: int = 5


class Rounds:
    """All rounds of a season: the streets in the order of the stops, the hour, the kilograms, the minutes."""

    def __init__(self, opt, count=20_000):
        rng = np.random.default_rng(opt.seed)
        depots = rng.integers(0, opt.streets, count)
        away = rng.normal(0, 400, (count, opt.stops)).astype(np.int64)
        self.streets = torch.from_numpy((depots[:, None] + away) % opt.streets)
        self.hour = torch.from_numpy(rng.integers(0, 24, count))
        self.load = torch.from_numpy(rng.gamma(2.0, 1.0, count).astype(np.float32))
        spread = np.abs(away).mean(1) / 400
        minutes = 0.6 * spread + 0.2 * self.load.numpy() + 0.3 * np.sin(self.hour.numpy() / 3.8)
        self.minutes = torch.from_numpy(minutes.astype(np.float32))

    def draw(self, generator, size):
        rows = torch.randint(len(self.minutes), (size,), generator=generator)
        return self.streets[rows], self.hour[rows], self.load[rows], self.minutes[rows]


class RoundTime(nn.Module):
    def __init__(self, opt):
        super().__init__()
        self.street = nn.Embedding(opt.streets, opt.width, sparse=True)
        self.hour = nn.Embedding(24, 16)
        self.along = nn.Conv1d(opt.width, 96, 3, padding=1)
        self.head = nn.Sequential(nn.Linear(96 + 16 + 1, 128), nn.SiLU(), nn.Linear(128, 1))

    def forward(self, streets, hour, load):
        path = self.street(streets).transpose(1, 2)
        path = F.silu(self.along(path)).amax(2)
        return self.head(torch.cat([path, self.hour(hour), load[:, None]], 1)).squeeze(1)


class Trainer:
    def __init__(self, opt, folder):
        self.opt, self.folder = opt, folder
        self.rounds = Rounds(opt)
        self.model = RoundTime(opt)
        self.optimizer = torch.optim.Adagrad(self.model.parameters(), lr=0.02)
        self.generator = torch.Generator().manual_seed(opt.seed)
        self.saved = []

    def save(self, step):
        path = os.path.join(self.folder, f"round_time_{step:05d}.pt")
        state = {
            "step": step,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "generator": self.generator.get_state(),
        }
        with open(path + ".part", "wb") as f:
            torch.save(state, f)
            f.flush()
            os.fsync(f.fileno())
        os.replace(path + ".part", path)
        self.saved.append(path)
        while len(self.saved) > self.opt.keep:
            os.remove(self.saved.pop(0))

    def one_step(self):
        streets, hour, load, minutes = self.rounds.draw(self.generator, self.opt.batch)
        loss = F.smooth_l1_loss(self.model(streets, hour, load), minutes)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def fit(self):
        began = time.perf_counter()
        for step in range(1, self.opt.steps + 1):
            loss = self.one_step()
            if step % self.opt.save_every == 0:
                self.save(step)
            if step % 30 == 0:
                print(f"step {step:4d}  loss {loss:.4f}")
        took = time.perf_counter() - began
        print(f"{self.opt.steps} steps, {1000 * took / self.opt.steps:.2f} ms a step")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--save-every", type=int, default=Options.save_every)
    options = Options(save_every=parser.parse_args().save_every)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    with tempfile.TemporaryDirectory() as place:
        Trainer(options, place).fit()
