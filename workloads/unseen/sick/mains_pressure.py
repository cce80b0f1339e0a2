# truth: startup_bound
# about: every run solves the same few thousand load cases of the pipe network anew, one after the other in Python, before its first step; the solved cases could be kept in a file
# cure: --solved
# gain: none
# needs: torch numpy
"""A surrogate for the pressure in a building's water mains.

The cases come from a Hardy Cross solver. --solved: the cases of an earlier run are in the folder, and are read."""
import argparse
import dataclasses
import pathlib
import tempfile
import time

import numpy as np
import torch
from torch import nn


@dataclasses.dataclass
class Network:
    """A ladder of loops: pipe 3k up, 3k+1 across, 3k+2 down; loop k has pipes (3k, 3k+1, 3k+2, 3k+4)."""
    loops: int = 8
    rounds: int = 60

    @property
    def pipes(self):
        return 3 * self.loops + 2

    def members(self):
        out = []
        for k in range(self.loops):
            out.append([(3 * k, 1.0), (3 * k + 1, 1.0), (3 * k + 2, -1.0), (3 * k + 4 if k < self.loops - 1 else 3 * k + 3, -1.0)])
        return out


def cases(net, count, seed=77):
    rng = np.random.default_rng(seed)
    resistance = rng.uniform(0.5, 4.0, (count, net.pipes))
    guess = rng.uniform(-1.0, 1.0, (count, net.pipes))
    return resistance, guess


def solve(net, resistance, guess):
    """Hardy Cross: loop by loop, until the head losses around each loop close."""
    flow = list(guess)
    members = net.members()
    for _ in range(net.rounds):
        for loop in members:
            head = slope = 0.0
            for pipe, way in loop:
                q = way * flow[pipe]
                head += resistance[pipe] * q * abs(q)
                slope += 2 * resistance[pipe] * abs(q)
            change = -head / (slope + 1e-9)
            for pipe, way in loop:
                flow[pipe] += way * change
    return [resistance[p] * flow[p] * abs(flow[p]) for p in range(net.pipes)]


def leave_behind(net, resistance, guess, path):
    """What the earlier run has left."""
    flow = guess.copy()
    for _ in range(net.rounds):
        for loop in net.members():
            pipes = [p for p, _ in loop]
            way = np.array([w for _, w in loop])
            q = way * flow[:, pipes]
            r = resistance[:, pipes]
            change = -(r * q * np.abs(q)).sum(1) / ((2 * r * np.abs(q)).sum(1) + 1e-9)
            flow[:, pipes] += way * change[:, None]
    np.save(path, (resistance * flow * np.abs(flow)).astype(np.float32))


class CaseStore:
    def __init__(self, folder, net, count):
        self.path = pathlib.Path(folder) / "heads.npy"
        self.net, self.count = net, count

    def load(self):
        resistance, guess = cases(self.net, self.count)
        if self.path.exists():
            heads = np.load(self.path)
        else:
            heads = np.array([solve(self.net, r, g) for r, g in zip(resistance.tolist(), guess.tolist())], np.float32)
        x = np.concatenate([resistance, guess], 1).astype(np.float32)
        return torch.from_numpy(x), torch.from_numpy(heads)


class Trainer:
    def __init__(self, x, y, batch=512):
        self.x, self.y, self.batch = (x - x.mean(0)) / x.std(0), (y - y.mean(0)) / (y.std(0) + 1e-6), batch
        self.model = nn.Sequential(nn.Linear(x.shape[1], 256), nn.GELU(), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, y.shape[1]))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-3)

    def run(self, steps):
        for step in range(steps):
            rows = torch.randint(0, len(self.x), (self.batch,))
            loss = nn.functional.mse_loss(self.model(self.x[rows]), self.y[rows])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if step % 60 == 0:
                print(f"step {step}: {loss.item():.4f}")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--cases", type=int, default=16000)
    ap.add_argument("--steps", type=int, default=300)
    ap.add_argument("--solved", action="store_true")
    args = ap.parse_args()
    torch.manual_seed(77)
    net = Network()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="mains") as folder:
        store = CaseStore(folder, net, args.cases)
        if args.solved:
            leave_behind(net, *cases(net, args.cases), store.path)
        x, y = store.load()
    ready, cpu = time.perf_counter(), time.process_time()
    Trainer(x, y).run(args.steps)
    print(f"ready after {ready - began:.2f} s, trained {time.perf_counter() - ready:.2f} s, cpu {cpu:.2f} {time.process_time() - cpu:.2f}")


if __name__ == "__main__":
    main()
