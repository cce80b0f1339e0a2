# truth: startup_bound
# about: every run reads the same till rolls again, line by line in Python, and counts which articles are bought together, before its first step; the result never changes and could be kept in a file
# also: data_loading_bound small_reads
# cure: --kept
# gain: none
# needs: torch numpy
"""Article vectors from supermarket receipts (like word2vec: articles of one receipt are neighbours).

--kept: the pairs are there from an earlier run, and are loaded."""
import argparse
import collections
import pathlib
import re
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

ARTICLES, RECEIPTS, SHOPS = 3000, 64_000, 6
LINE = re.compile(r"^\s*(?P<count>\d+)\s*x\s+ART(?P<article>\d{5})\s+(?P<price>\d+[.,]\d\d)\s*EUR$")


def purchases():
    rng = np.random.default_rng(77)
    theme = rng.integers(0, ARTICLES, (RECEIPTS, 1))
    items = (theme + rng.normal(0, 15, (RECEIPTS, 12)).astype(np.int64)) % ARTICLES
    return items, rng.integers(4, 13, RECEIPTS)


def print_rolls(folder):
    """What the tills have printed, one file a shop."""
    text = [f"  {1 + i % 3} x ART{i:05d}   {0.5 + i % 40:.2f} EUR\n" for i in range(ARTICLES)]
    items, sizes = purchases()
    items, sizes = items.tolist(), sizes.tolist()
    for shop in range(SHOPS):
        with open(folder / f"shop{shop}.roll", "w") as roll:
            for k in range(shop, RECEIPTS, SHOPS):
                roll.write(f"# receipt {shop}-{k:06d}\n")
                roll.write("".join([text[i] for i in items[k][:sizes[k]]]) + "TOTAL\n\n")


def leave_table(path):
    """Puts the file in place that an earlier run has left."""
    items, sizes = purchases()
    codes, counts = [], []
    for p in range(12):
        for q in range(12):
            a, b = items[:, p], items[:, q]
            ok = (p < sizes) & (q < sizes) & (a != b)
            a, b = a[ok], b[ok]
            codes.append(a * ARTICLES + b)
            counts.append(np.minimum(1 + a % 3, 1 + b % 3))
    total = np.bincount(np.concatenate(codes), np.concatenate(counts))
    codes = np.flatnonzero(total)
    weight = total[codes] ** 0.75
    np.savez(path, pairs=np.stack([codes // ARTICLES, codes % ARTICLES], 1), weight=weight / weight.sum())


def read_rolls(folder):
    receipt = []
    for path in sorted(folder.glob("*.roll")):
        with open(path) as roll:
            for line in roll:
                if line.startswith("# receipt"):
                    receipt = []
                elif line.startswith("TOTAL"):
                    yield receipt
                else:
                    found = LINE.match(line)
                    if found:
                        price = float(found["price"].replace(",", "."))
                        if price > 0:
                            receipt.append((int(found["article"]), int(found["count"])))


def count_pairs(folder):
    together = collections.Counter()
    for receipt in read_rolls(folder):
        for a, m in receipt:
            for b, n in receipt:
                if a != b:
                    together[a, b] += min(m, n)
    pairs = sorted(together)
    weight = np.array([together[pair] for pair in pairs], dtype=np.float64) ** 0.75
    pairs = np.array(pairs, dtype=np.int64)
    return pairs, weight / weight.sum()


class Vectors(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.left = nn.Embedding(ARTICLES, width)
        self.right = nn.Embedding(ARTICLES, width)
        nn.init.normal_(self.left.weight, std=0.1)
        nn.init.normal_(self.right.weight, std=0.1)

    def forward(self, a, b, strangers):
        centre = self.left(a)
        near = (centre * self.right(b)).sum(1)
        far = centre @ self.right(strangers).t()
        return -F.logsigmoid(near).mean() - F.logsigmoid(-far).mean()


def train(pairs, weight, steps=100, batch=2048):
    rng = np.random.default_rng(78)
    torch.manual_seed(78)
    model = Vectors()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    chosen = torch.from_numpy(pairs[rng.choice(len(pairs), steps * batch, p=weight)])
    began = time.perf_counter()
    for step, rows in enumerate(chosen.split(batch)):
        loss = model(rows[:, 0], rows[:, 1], torch.randint(ARTICLES, (256,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 24:
            print("step", step + 1, "loss", round(loss.item(), 4))
    return 1000 * (time.perf_counter() - began) / steps


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--kept", action="store_true")
    options = options.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        if options.kept:
            leave_table(folder / "pairs.npz")
        else:
            print_rolls(folder)
        began = time.perf_counter()
        if options.kept:
            with np.load(folder / "pairs.npz") as table:
                pairs, weight = table["pairs"], table["weight"]
        else:
            pairs, weight = count_pairs(folder)
    ready = time.perf_counter() - began
    each = train(pairs, weight)
    print(f"{len(pairs)} pairs ready after {ready:.2f} s; {each:.2f} ms a step; {time.perf_counter() - began:.2f} s in all")


if __name__ == "__main__":
    main()
