#!/usr/bin/env python3
# truth: startup_bound
# about: before the first step the whole syslog is masked and compared with all templates found so far, line by line in Python, and brings
# about: the same template numbers in every run; the cured run takes them from the file that an earlier run would have kept
# cure: --kept
# gain: none
# needs: torch numpy
"""Learns the usual order of messages in a router's log, to notice the unusual."""
import argparse
import os
import re
import shutil
import tempfile
import time

import numpy as np
import torch
from torch import nn

MASKS = [(re.compile(p), s) for p, s in [
    (r"^\w{3} [ \d]\d \d\d:\d\d:\d\d \S+ ", ""),
    (r"\b\d{1,3}(?:\.\d{1,3}){3}(?:/\d+)?\b", "<ip>"),
    (r"\b[0-9a-f]{2}(?::[0-9a-f]{2}){5}\b", "<mac>"),
    (r"\b(?:ge|xe|et)-\d+/\d+/\d+(?:\.\d+)?\b", "<port>"),
    (r"\b0x[0-9a-f]+\b", "<hex>"),
    (r"\bAS ?\d+\b", "<as>"),
    (r"\b\w+\[\d+\]:", "<daemon>"),
    (r"\b\d+(?:\.\d+)?(?:ms|us|s)\b", "<time>"),
    (r"\b\d+(?:\.\d+)?%", "<share>"),
    (r"\b\d+\b", "<n>"),
    (r"\"[^\"]*\"", "<text>"),
    (r"\s+", " "),
]]
VERBS = "up down flapped learned withdrew refused accepted dropped reset expired renewed synced".split()
THINGS = "neighbor session route lease tunnel queue mirror policy".split()


def write_log(folder, count, kept):
    """The log of a made-up router; with `kept` also what parsing it brought the last time."""
    rng = np.random.default_rng(61)
    kinds = len(VERBS) * len(THINGS)
    follow = rng.permutation(kinds)
    jump, to = rng.random(count) < 0.25, rng.integers(0, kinds, count)
    octets, ports, hexes = rng.integers(0, 255, (count, 4)), rng.integers(0, 48, count), rng.integers(0, 1 << 30, count)
    kind, order = 0, np.empty(count, np.int64)
    path = os.path.join(folder, "router.log")
    with open(path, "w") as f:
        for i in range(count):
            kind = int(to[i]) if jump[i] else int(follow[kind])
            order[i] = kind
            a, b, c, d = octets[i]
            session = "".join(chr(97 + v % 26) for v in (a, b, c, d))
            f.write(f"Mar  {i % 9 + 1} 04:{a % 60:02d}:{b % 60:02d} core1 rpd[{1000 + c}]: {session} {THINGS[kind % 8]} {a}.{b}.{c}.{d}/24 on "
                    f"xe-0/0/{ports[i]}.0 {VERBS[kind // 8]} after {d}ms, flags 0x{hexes[i]:x}, AS {64512 + a}, load {b % 100}%\n")
    if kept:
        _, first, inverse = np.unique(order, return_index=True, return_inverse=True)
        np.save(path + ".templates.npy", np.argsort(np.argsort(first))[inverse.ravel()])
    return path


def templates(path):
    """Every line as the number of its template, in the order of first sight."""
    if os.path.exists(path + ".templates.npy"):
        return np.load(path + ".templates.npy")
    known, numbers = [], []
    with open(path) as f:
        for line in f:
            line = line.rstrip("\n")
            for mask, sign in MASKS:
                line = mask.sub(sign, line)
            words = line.split(" ")
            best, alike = 0, -1
            for number, template in enumerate(known):
                if len(template) == len(words):
                    same = sum(map(str.__eq__, template, words))
                    if same > alike:
                        best, alike = number, same
            if alike < len(words) - 1:
                best = len(known)
                known.append(words)
            else:
                known[best] = [a if a == b else "<*>" for a, b in zip(known[best], words)]
            numbers.append(best)
    return np.array(numbers)


class Next(nn.Module):
    def __init__(self, kinds):
        super().__init__()
        self.embed = nn.Embedding(kinds, 64)
        self.rnn = nn.GRU(64, 128, batch_first=True)
        self.out = nn.Linear(128, kinds)

    def forward(self, x):
        return self.out(self.rnn(self.embed(x))[0])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--lines", type=int, default=75_000)
    ap.add_argument("--steps", type=int, default=200)
    ap.add_argument("--kept", action="store_true", help="an earlier run has kept the parsed log")
    args = ap.parse_args()
    torch.manual_seed(17)
    folder = tempfile.mkdtemp(prefix="router")
    try:
        path = write_log(folder, args.lines, args.kept)
        begin = time.perf_counter()
        numbers = torch.from_numpy(templates(path)).long()
        ready = time.perf_counter()
        windows = numbers[: len(numbers) // 33 * 33].view(-1, 33)
        model = Next(int(numbers.max()) + 1)
        opt = torch.optim.Adam(model.parameters(), lr=2e-3)
        recent = 0.0
        for step in range(args.steps):
            part = windows[torch.randint(0, len(windows), (48,))]
            opt.zero_grad()
            loss = nn.functional.cross_entropy(model(part[:, :-1]).flatten(0, 1), part[:, 1:].flatten())
            loss.backward()
            opt.step()
            recent = 0.95 * recent + 0.05 * loss.item()
        end = time.perf_counter()
        print(f"loss {recent:.3f}, {int(numbers.max()) + 1} templates, check {int((numbers * (torch.arange(len(numbers)) % 97)).sum())}; "
              f"prepared in {ready - begin:.2f} s, {args.steps} steps in {end - ready:.2f} s, all {end - begin:.2f} s")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
