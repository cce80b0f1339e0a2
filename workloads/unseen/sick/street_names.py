# truth: evaluation_heavy
# about: after every sixth step the whole validation text is gone through, which takes longer than the six steps
# gain: run
# cure: --check-every 60
# whatif: evaluation=10
# needs: torch numpy
"""Small transformer that invents street names, letter by letter."""
import argparse
import os
import shutil
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, RandomSampler

LETTERS = "\nabcdefghijklmnopqrstuvwxyz "
PARTS = ["oak", "mill", "church", "high", "station", "king", "bridge", "green", "old", "north",
         "well", "garden", "market", "stone", "river", "park", "field", "queen", "hill", "wood"]
ENDS = ["street", "lane", "road", "way", "close", "gate", "row", "square"]


def write_names(path, count, rng):
    with open(path, "w") as out:
        for _ in range(count):
            first, second = rng.integers(0, len(PARTS), 2)
            out.write(f"{PARTS[first]}{PARTS[second]} {ENDS[rng.integers(0, len(ENDS))]}\n")


class Letters(Dataset):
    def __init__(self, path, length, stride):
        with open(path) as handle:
            text = handle.read()
        self.codes = torch.tensor([LETTERS.index(letter) for letter in text])
        self.length = length
        self.stride = stride

    def __len__(self):
        return (len(self.codes) - 1 - self.length) // self.stride

    def __getitem__(self, index):
        first = index * self.stride
        piece = self.codes[first:first + self.length + 1]
        return piece[:-1], piece[1:]


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.before = nn.LayerNorm(width)
        self.attend = nn.MultiheadAttention(width, heads, batch_first=True)
        self.between = nn.LayerNorm(width)
        self.think = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x, mask):
        y = self.before(x)
        x = x + self.attend(y, y, y, attn_mask=mask, need_weights=False)[0]
        return x + self.think(self.between(x))


class Namer(nn.Module):
    def __init__(self, length, width=64, depth=2, heads=4):
        super().__init__()
        self.letters = nn.Embedding(len(LETTERS), width)
        self.places = nn.Parameter(torch.zeros(length, width))
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.out = nn.Linear(width, len(LETTERS))
        self.register_buffer("mask", torch.full((length, length), float("-inf")).triu(1))

    def forward(self, codes):
        x = self.letters(codes) + self.places
        for block in self.blocks:
            x = block(x, self.mask)
        return self.out(x)


def letter_loss(model, codes, following):
    return nn.functional.cross_entropy(model(codes).flatten(0, 1), following.flatten())


@torch.no_grad()
def validate(model, loader):
    model.eval()
    total = sum(letter_loss(model, codes, following).item() for codes, following in loader)
    model.train()
    return total / len(loader)


def train(model, texts, held_back, options):
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr)
    best = float("inf")
    for step, (codes, following) in enumerate(texts, 1):
        loss = letter_loss(model, codes, following)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % options.check_every == 0:
            best = min(best, validate(model, held_back))
            print(f"step {step}: best {best:.4f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--names", type=int, default=6000)
    parser.add_argument("--held-back", type=int, default=1100)
    parser.add_argument("--length", type=int, default=48)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--steps", type=int, default=124)
    parser.add_argument("--check-every", type=int, default=6)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=12)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    rng = np.random.default_rng(options.seed)
    folder = tempfile.mkdtemp(prefix="street_")
    try:
        ours, theirs = os.path.join(folder, "names.txt"), os.path.join(folder, "held.txt")
        write_names(ours, options.names, rng)
        write_names(theirs, options.held_back, rng)
        names = Letters(ours, options.length, 3)
        picks = RandomSampler(names, replacement=True, num_samples=options.steps * options.batch)
        train(Namer(options.length), DataLoader(names, batch_size=options.batch, sampler=picks),
              DataLoader(Letters(theirs, options.length, 24), batch_size=64), options)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
