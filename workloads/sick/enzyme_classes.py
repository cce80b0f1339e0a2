#!/usr/bin/env python3
# truth: padding_waste
# about: sequences of very different lengths are drawn into batches at random and padded to the longest, so that three quarters of what the encoder multiplies is padding
# cure: cured/enzyme_classes.py
# needs: torch numpy
"""Enzyme class from the amino acid sequence: a small transformer encoder, AdamW, one process."""
import math
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

AMINO, CLASSES, PROTEINS, BATCH, WIDTH, LONGEST = 20, 7, 2048, 16, 64, 420


class Proteins(Dataset):
    """Most enzymes here are short domains, some are whole chains of hundreds."""

    def __init__(self, rng):
        lengths = np.clip(rng.lognormal(3.3, 1.0, PROTEINS), 12, LONGEST).astype(int)
        self.classes = rng.integers(CLASSES, size=PROTEINS)
        self.chains = []
        for length, kind in zip(lengths, self.classes):
            chain = rng.integers(1, AMINO + 1, size=length)
            chain[rng.random(length) < 0.15] = kind + 3
            self.chains.append(torch.from_numpy(chain))

    def __len__(self):
        return PROTEINS

    def __getitem__(self, i):
        return self.chains[i], int(self.classes[i])


def collate(samples):
    chains, classes = zip(*samples)
    return nn.utils.rnn.pad_sequence(chains, batch_first=True), torch.tensor(classes)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.amino = nn.Embedding(AMINO + 1, WIDTH, padding_idx=0)
        place = torch.arange(LONGEST)[:, None] * torch.exp(torch.arange(0, WIDTH, 2) * (-math.log(1e4) / WIDTH))
        self.register_buffer("place", torch.cat([place.sin(), place.cos()], 1))
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 128, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, chain):
        empty = chain == 0
        x = self.layers(self.amino(chain) + self.place[:chain.shape[1]], src_key_padding_mask=empty)
        x = x.masked_fill(empty[:, :, None], 0).sum(1) / (~empty).sum(1, keepdim=True)
        return self.head(x)


def main():
    torch.manual_seed(8)
    proteins = Proteins(np.random.default_rng(8))
    loader = DataLoader(proteins, batch_size=BATCH, shuffle=True, collate_fn=collate)
    model = Encoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    steps, begin = 0, time.perf_counter()
    for chain, kind in loader:
        loss = nn.functional.cross_entropy(model(chain), kind)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        steps += 1
        if steps % 32 == 0:
            print(f"step {steps}: loss {loss.item():.3f}")
    seconds = time.perf_counter() - begin
    print(f"{steps} steps in {seconds:.2f} s, {1000 * seconds / steps:.1f} ms a step")


if __name__ == "__main__":
    main()
