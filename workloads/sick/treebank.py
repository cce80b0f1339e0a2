# truth: gc_pauses
# about: a helper calls gc.collect() after every step to keep memory low, and each full collection walks through the more than two hundred thousand nodes of the parsed treebank
# cure: --collect-every 0
# needs: torch
"""Sentiment of parse trees: a small GRU reads the leaves, the trees stay in memory as linked nodes."""
import argparse
import gc
import random

import torch
from torch import nn

WORDS = 4000


class Node:
    __slots__ = ("word", "parent", "children")

    def __init__(self, parent=None):
        self.word = None
        self.parent = parent
        self.children = []


def grow(rng, leaves, parent=None):
    node = Node(parent)
    if leaves == 1:
        node.word = rng.randrange(WORDS)
    else:
        cut = rng.randint(1, leaves - 1)
        node.children = [grow(rng, cut, node), grow(rng, leaves - cut, node)]
    return node


def read_treebank(count, leaves, seed=31):
    rng = random.Random(seed)
    return [(grow(rng, leaves), rng.randrange(5)) for _ in range(count)]


def words_of(node):
    if node.word is not None:
        yield node.word
    for child in node.children:
        yield from words_of(child)


def batches(trees, size, steps, rng):
    for _ in range(steps):
        chosen = rng.sample(trees, size)
        yield (torch.tensor([list(words_of(root)) for root, _ in chosen]), torch.tensor([y for _, y in chosen]))


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, 48)
        self.gru = nn.GRU(48, 96, batch_first=True)
        self.out = nn.Linear(96, 5)

    def forward(self, tokens):
        _, h = self.gru(self.embedding(tokens))
        return self.out(h[-1])


def free_memory():
    # graphs of the last step may hang in cycles
    gc.collect()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--collect-every", type=int, default=1)
    parser.add_argument("--steps", type=int, default=50)
    args = parser.parse_args()
    torch.manual_seed(31)
    trees = read_treebank(count=5000, leaves=24)
    model = Reader()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step, (tokens, labels) in enumerate(batches(trees, 32, args.steps, random.Random(8))):
        loss = nn.functional.cross_entropy(model(tokens), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if args.collect_every and step % args.collect_every == 0:
            free_memory()
        if step % 20 == 0:
            print(f"step {step}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
