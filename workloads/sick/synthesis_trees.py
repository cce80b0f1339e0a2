# truth: gc_pauses
# about: the search keeps a large forest of linked molecule nodes in memory, and after every training step it calls gc.collect(), which walks over all of them
# also: allocation_churn
# cure: --tidy-every 40
# whatif: gc=40
# advice: gc
# needs: torch numpy
"""Retrosynthesis: a value net learns how far a molecule is from what can be bought, and steers the expansion of search trees."""
import argparse
import gc
import random
import time

import numpy as np
import torch
from torch import nn


class Node:
    """A molecule in a tree; it knows its precursors, and they know it."""

    def __init__(self, code, parent=None):
        self.code = code
        self.parent = parent
        self.precursors = []
        self.visits = {"n": 0, "value": 0.0}

    def split(self, rng, ways=3):
        self.precursors = [Node(rng.getrandbits(64), self) for _ in range(ways)]
        return self.precursors


class Forest:
    def __init__(self, targets, depth, seed):
        self.rng = random.Random(seed)
        self.roots = [Node(self.rng.getrandbits(64)) for _ in range(targets)]
        self.leaves = []
        for root in self.roots:
            level = [root]
            for _ in range(depth):
                level = [c for node in level for c in node.split(self.rng)]
            self.leaves += level

    def rollout(self, start, length):
        """A trial line from a leaf; its nodes are forgotten afterwards."""
        codes, node = [], start
        trial = Node(start.code, start)
        for _ in range(length):
            trial = self.rng.choice(trial.split(self.rng, 2))
            codes.append(trial.code)
        start.visits["n"] += 1
        return codes


def fingerprints(codes):
    """256 bits of each molecule."""
    codes = np.array(codes, dtype=np.uint64)
    mixed = np.stack([codes * np.uint64(2 * k + 0x9E3779B97F4A7C15) for k in range(4)], 1)
    return torch.from_numpy(np.unpackbits(mixed.view(np.uint8), axis=1).astype(np.float32))


class Search:
    def __init__(self, cfg):
        self.cfg = cfg
        self.forest = Forest(cfg.targets, 7, seed=8)
        self.value = nn.Sequential(nn.Linear(256, 320), nn.GELU(), nn.LayerNorm(320), nn.Linear(320, 320), nn.GELU(), nn.Linear(320, 1))
        self.opt = torch.optim.AdamW(self.value.parameters(), 1e-3)

    def tidy(self, step):
        if step % self.cfg.tidy_every == 0:
            gc.collect()

    def learn(self, step):
        rng = self.forest.rng
        codes = [c for _ in range(32) for c in self.forest.rollout(rng.choice(self.forest.leaves), 16)]
        x = fingerprints(codes)
        goal = x[:, :64].sum(1, keepdim=True) / 32 - 1
        loss = nn.functional.mse_loss(self.value(x), goal)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.tidy(step)
        return loss.item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--tidy-every", type=int, default=1)
    ap.add_argument("--targets", type=int, default=32)
    ap.add_argument("--steps", type=int, default=120)
    cfg = ap.parse_args()
    torch.manual_seed(8)
    torch.set_num_threads(2)
    search = Search(cfg)
    began = time.perf_counter()
    for step in range(1, cfg.steps + 1):
        loss = search.learn(step)
        if step % 30 == 0:
            print("step %d: %.4f" % (step, loss))
    print("%.2f ms per step" % (1e3 * (time.perf_counter() - began) / cfg.steps))


if __name__ == "__main__":
    main()
