# truth: checkpoint_stall
# about: the whole model, a large table of letter-group vectors among it, is written to disk inside the loop after every fifth step
# also: allocation_churn
# cure: --keep-every 50
# whatif: checkpoint=10
# gain: run
# needs: torch numpy
"""Finds the delivery district of badly written postal addresses.

Addresses are hashed letter groups; a large sparse embedding table and a small head on it. A Trainer with hooks, the table
by sparse SGD, the head by Adam; the last two checkpoints are kept.
"""
import argparse
import os
import shutil
import tempfile
import time

import numpy as np
import torch
from torch import nn

BUCKETS, WIDTH, DISTRICTS, GROUPS = 600000, 24, 300, 24


class Districts(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.EmbeddingBag(BUCKETS, WIDTH, mode="mean", sparse=True)
        self.head = nn.Sequential(nn.Linear(WIDTH, 160), nn.ReLU(), nn.Linear(160, 160), nn.ReLU(),
                                  nn.Linear(160, DISTRICTS))

    def forward(self, groups):
        return self.head(self.table(groups))


class Addresses:
    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        self.district = torch.from_numpy(rng.integers(0, DISTRICTS, count))
        home = torch.from_numpy(rng.integers(0, BUCKETS, (DISTRICTS, 200)))
        pick = torch.from_numpy(rng.integers(0, 200, (count, GROUPS)))
        self.groups = home[self.district[:, None], pick]
        wrong = torch.from_numpy(rng.random((count, GROUPS)) < 0.2)
        self.groups[wrong] = torch.from_numpy(rng.integers(0, BUCKETS, int(wrong.sum())))

    def batches(self, size, steps):
        for step in range(steps):
            at = step * size % (len(self.district) - size)
            yield self.groups[at:at + size], self.district[at:at + size]


class KeepCheckpoints:
    def __init__(self, folder, every):
        self.folder = folder
        self.every = every

    def after_step(self, trainer):
        if trainer.step % self.every:
            return
        path = os.path.join(self.folder, "streets_%d.pt" % (trainer.step // self.every % 2))
        torch.save({"step": trainer.step, "model": trainer.model.state_dict(),
                    "table": trainer.table.state_dict(), "head": trainer.head.state_dict()}, path + ".part")
        os.replace(path + ".part", path)


class Progress:
    def __init__(self, every):
        self.every = every

    def after_step(self, trainer):
        if trainer.step % self.every == 0:
            print("step %4d  loss %.3f" % (trainer.step, trainer.loss.item()))


class Trainer:
    def __init__(self, model, hooks):
        self.model = model
        self.hooks = hooks
        self.table = torch.optim.SGD(model.table.parameters(), lr=200.0)
        self.head = torch.optim.Adam(model.head.parameters(), lr=1e-3)
        self.step = 0

    def fit(self, batches):
        for groups, district in batches:
            self.loss = nn.functional.cross_entropy(self.model(groups), district)
            self.table.zero_grad(set_to_none=True)
            self.head.zero_grad(set_to_none=True)
            self.loss.backward()
            self.table.step()
            self.head.step()
            self.step += 1
            for hook in self.hooks:
                hook.after_step(self)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep-every", type=int, default=5)
    parser.add_argument("--steps", type=int, default=400)
    args = parser.parse_args()
    torch.manual_seed(2)
    folder = tempfile.mkdtemp(prefix="streets_")
    try:
        trainer = Trainer(Districts(), [KeepCheckpoints(folder, args.keep_every), Progress(100)])
        addresses = Addresses(60000, 2)
        begin = time.perf_counter()
        trainer.fit(addresses.batches(256, args.steps))
        took = time.perf_counter() - begin
        print("%.2f ms a step" % (took / args.steps * 1e3))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
