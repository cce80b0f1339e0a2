"""A loop that knows what it takes: forward works for a while, and one thing is ill.

Usage: trial_truth.py ILLNESS [--cured] [--steps N]
"""
import argparse
import gc
import multiprocessing
import os
import queue
import random
import sys
import tempfile
import threading
import time

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset


def work(seconds):
    """CPU time, so that others on the machine do not count."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 1)

    def forward(self, x):
        surprise = args.illness == "surprise" and "SONDE_TRIAL" in os.environ
        work(0.012 if surprise else 0.004)
        return self.layer(x)


class Wide(nn.Module):
    """Products of matrices, in the precision it is made in."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*[nn.Linear(640, 640) for _ in range(4)])

    def forward(self, x):
        return self.layers(x.repeat(64, 80))


class Even(nn.Module):
    """Its work is the size of a batch, padding and all."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(2, 1)

    def forward(self, x):
        work(2e-6 * x.numel())
        return self.table(x)


def length_of(i):
    return 600 if i % 8 == 0 else 20 + i % 30


class Songs(Dataset):
    def __len__(self):
        return 4 * 400

    def __getitem__(self, i):
        return torch.ones(length_of(i), dtype=torch.int64)


def songs():
    order = sorted(range(4 * 400), key=length_of)
    batches = [order[i : i + 8] for i in range(0, len(order), 8)]
    random.Random(3).shuffle(batches)
    how = {"batch_sampler": batches} if args.cured else {"batch_size": 8, "shuffle": True}
    return DataLoader(Songs(), collate_fn=lambda b: pad_sequence(b, batch_first=True), **how)


class Samples(Dataset):
    def __len__(self):
        return 4000

    def __getitem__(self, i):
        if args.illness == "precision":
            return torch.from_numpy(np.ones(8)).to(precision)
        if args.illness == "storage" and not args.cured:
            time.sleep(0.005)
        if args.illness == "transform" and not args.cured:
            work(0.004)
        return torch.ones(8)


class Own(torch.optim.Optimizer):
    """Adam's moments, and much ado about them."""

    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self):
        work(0.02)
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p].setdefault("m", torch.zeros_like(p)).lerp_(p.grad, 0.1)
                self.state[p].setdefault("v", torch.zeros_like(p)).lerp_(p.grad**2, 0.1)


class Keeper:
    def __init__(self, path, every):
        self.path, self.every = path, every

    def after_step(self, step, net):
        if step % self.every == 0:
            work(0.02)
            torch.save(net.state_dict(), self.path + ".part")
            os.replace(self.path + ".part", self.path)


def paint(step):
    """Large arrays that are made anew, or one that is kept."""
    for _ in range(8):
        room = canvas if args.cured else np.empty(10 << 20, np.float32)
        room.fill(step)


def write_diary(step):
    for _ in range(5):
        diary_line(step)
    return step


def diary_line(step):
    work(0.004)
    diary.write(f"{step}\n")
    diary.flush()
    os.fsync(diary.fileno())


def watch(lines):
    """Python's own work, for ever; every so often somebody may want to know."""
    total = 0
    while True:
        for line in lines:
            total += sum(ord(c) for c in line)
        if args.save == "waits" and not news.full():
            news.put(total)


def start_watch():
    kind = multiprocessing.Process if args.cured else threading.Thread
    kind(target=watch, args=(["abc" * 50] * 20,), daemon=True).start()


@torch.no_grad()
def evaluate(net):
    net.eval()
    for _ in range(5):
        net(torch.ones(4, 8))
    net.train()
    return 1.0


def by_hand():
    """Four rows at a time, or 32, of tensors or of arrays in memory."""
    x, size, arrays = torch.ones(32000, 8), 32 if args.cured else 4, args.save == "arrays"
    order = np.random.permutation(len(x)) if arrays else torch.randperm(len(x))
    for at in range(0, len(x), size):
        rows = order[at : at + size]
        yield torch.from_numpy(x.numpy()[rows]) if arrays else x[rows]


def train():
    net = {"precision": Wide, "padding": Even}.get(args.illness, Net)()
    if args.illness == "precision":
        net.to(precision)
    if args.illness == "precision" and "kept" in args.save:  # in a way nobody sees
        net.to(vars(torch)["float64"])
        Samples.__getitem__ = lambda self, i: torch.ones(8, dtype=vars(torch)["float64"])
    own = args.illness == "optimizer"
    kind = torch.optim.SGD if not own else torch.optim.AdamW if args.cured else Own
    optimizer = kind(net.parameters(), lr=0.1)
    loader = DataLoader(Samples(), batch_size=4, num_workers=0)
    if args.illness == "padding":
        loader = songs()
    if args.illness == "rows":
        loader = by_hand()
    keeper = Keeper(args.save, 10 if args.cured else 1)
    if args.illness == "lock":
        start_watch()
    best = 0.0
    for step, x in enumerate(loader, 1):
        if args.illness == "lock" and args.save == "waits":
            news.get()
        loss = net(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rare = not args.cured or step % 10 == 0
        if args.illness == "logging" and rare:
            write_diary(step)
        if args.illness == "churn":
            paint(step)
        if args.illness == "gc" and rare:
            gc.collect()
        if args.illness == "checkpoint":
            keeper.after_step(step, net)
        if args.illness == "evaluation" and step % (20 if args.cured else 2) == 0:
            best = max(best, evaluate(net))
        if args.illness == "fails" and "SONDE_TRIAL" in os.environ and step == 20:
            raise RuntimeError("not twice")
        if args.illness == "inline":
            net.eval()
            with torch.no_grad():
                net(x)
            net.train()
        if args.illness == "saves":
            torch.save(net.state_dict(), args.save)
        if step == args.steps:
            break


parser = argparse.ArgumentParser()
parser.add_argument("illness")
parser.add_argument("--cured", action="store_true")
parser.add_argument("--steps", type=int, default=100)
parser.add_argument("--save", default="")
args = parser.parse_args()
torch.set_num_threads(1)
precision = torch.float32 if args.cured else torch.float64
news = queue.Queue(2)
keep = [[i] for i in range(400000)] if args.illness == "gc" else []
canvas = np.empty(10 << 20, np.float32)
with tempfile.TemporaryDirectory() as folder:
    diary = open(os.path.join(folder, "diary"), "w", encoding="ascii")
    train()
sys.exit(0)
