#!/usr/bin/env python3
# truth: padding_waste
# about: peptides have 8 to 160 residues, most of them fewer than 30, but every one is filled up to the longest that the tokenizer knows, so the network runs over batches that are four fifths padding; cured, batches are made of peptides of similar length and filled up to their own longest
# cure: --group-lengths
# needs: torch numpy
"""Retention times of peptides in a chromatograph, by a convolutional network with attention over residues."""
import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

LONGEST = 160
PAD = 0


class Peptides(Dataset):
    def __init__(self, count):
        rng = np.random.default_rng(77)
        self.lengths = np.clip(np.exp(rng.normal(3.15, 0.5, count)), 8, LONGEST).astype(int)
        affinity = rng.normal(size=21)
        self.items = []
        for length in self.lengths:
            residues = rng.integers(1, 21, length)
            self.items.append((torch.from_numpy(residues), float(affinity[residues].sum() / 8)))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


class SimilarLengths(Sampler):
    """Batches of neighbours in a list sorted by length, in random order."""

    def __init__(self, lengths, size):
        self.order = np.argsort(lengths, kind="stable")
        self.size = size

    def __len__(self):
        return len(self.order) // self.size

    def __iter__(self):
        for start in torch.randperm(len(self)).tolist():
            yield self.order[start * self.size:(start + 1) * self.size].tolist()


def to_limit(items):
    tokens = torch.full((len(items), LONGEST), PAD, dtype=torch.long)
    for row, (residues, _) in zip(tokens, items):
        row[:len(residues)] = residues
    return tokens, torch.tensor([time_ for _, time_ in items])


def to_longest(items):
    tokens = nn.utils.rnn.pad_sequence([residues for residues, _ in items], batch_first=True, padding_value=PAD)
    return tokens, torch.tensor([time_ for _, time_ in items])


class Column(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.embed = nn.Embedding(21, width, padding_idx=PAD)
        self.near = nn.ModuleList(nn.Conv1d(width, width, 5, padding=2) for _ in range(3))
        self.look = nn.Linear(width, 1)
        self.out = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, tokens):
        there = tokens.ne(PAD)
        x = self.embed(tokens).transpose(1, 2)
        for layer in self.near:
            x = x + nn.functional.silu(layer(x)) * there[:, None]
        x = x.transpose(1, 2)
        weight = self.look(x).squeeze(2).masked_fill(~there, -1e9).softmax(1)
        return self.out((weight[:, None] @ x).squeeze(1) * there.sum(1, keepdim=True).sqrt()).squeeze(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--group-lengths", action="store_true")
    parser.add_argument("--count", type=int, default=2560)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(1)
    data = Peptides(args.count)
    if args.group_lengths:
        loader = DataLoader(data, batch_sampler=SimilarLengths(data.lengths, 32), collate_fn=to_longest)
    else:
        loader = DataLoader(data, batch_size=32, shuffle=True, drop_last=True, collate_fn=to_limit)
    model = Column()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    steps, begin = 0, time.perf_counter()
    for epoch in range(args.epochs):
        total = 0.0
        for tokens, minutes in loader:
            optimizer.zero_grad()
            loss = nn.functional.smooth_l1_loss(model(tokens), minutes)
            loss.backward()
            optimizer.step()
            total += loss.item()
            steps += 1
        print(f"epoch {epoch}: {total / len(loader):.3f}")
    took = time.perf_counter() - begin
    print(f"{steps} steps, {took:.2f} s, {1e3 * took / steps:.1f} ms a step")


if __name__ == "__main__":
    main()
