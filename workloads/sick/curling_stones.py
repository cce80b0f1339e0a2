# truth: checkpoint_stall
# about: the learner, its target and Adam's moments, 40 MB together, are written to disk after every step; writing takes longer than the step
# also: io_wait
# cure: --keep-every 20
# gain: run
# whatif: checkpoint=20
# needs: torch numpy
"""Where to put the next stone: Q-learning over sheets of ice coded as cells."""
import argparse
import copy
import os
import tempfile
import time

import numpy as np
import torch
from torch import nn

CELLS, THROWS, STONES = 300, 24, 8


class Worth(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = nn.Embedding(CELLS, 32)
        self.judge = nn.Sequential(nn.Linear(32 * STONES, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(),
                                   nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, THROWS))

    def forward(self, sheet):
        return self.judge(self.cells(sheet).flatten(1))


class Rink:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def games(self, count):
        sheet = self.rng.integers(CELLS, size=(count, STONES))
        throw = self.rng.integers(THROWS, size=count)
        after = sheet.copy()
        after[:, 0] = (after[:, 0] + 7 * throw) % CELLS
        reward = -np.abs(after[:, 0] - 150).astype(np.float32) / 150
        return [torch.from_numpy(a) for a in (sheet, throw, reward, after)]


def keep(folder, **parts):
    path = os.path.join(folder, "latest.pt")
    torch.save({name: part.state_dict() for name, part in parts.items()}, path + ".part")
    os.replace(path + ".part", path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--keep-every", type=int, default=1)
    options = parser.parse_args()
    torch.manual_seed(53)
    rink, learner = Rink(53), Worth()
    target = copy.deepcopy(learner)
    optimizer = torch.optim.Adam(learner.parameters(), lr=1e-3)
    with tempfile.TemporaryDirectory() as folder:
        began, cpu = time.perf_counter(), time.process_time()
        for step in range(1, options.steps + 1):
            sheet, throw, reward, after = rink.games(128)
            with torch.no_grad():
                goal = reward + 0.9 * target(after).max(1).values
            guess = learner(sheet).gather(1, throw[:, None]).squeeze(1)
            loss = nn.functional.smooth_l1_loss(guess, goal)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 50 == 0:
                target.load_state_dict(learner.state_dict())
            if step % options.keep_every == 0:
                keep(folder, learner=learner, target=target, optimizer=optimizer)
        took = time.perf_counter() - began
    print(f"loss {loss.item():.4f}; {1000 * took / options.steps:.2f} ms a step, {time.process_time() - cpu:.1f} s of CPU, {took:.2f} s")


if __name__ == "__main__":
    main()
