#!/usr/bin/env python3
# truth: padding_waste
# about: every bout is filled with zeros up to the 640 punches that a record may have, though the mean is a seventh of that, and the network works through all of it
# cure: cured/bout_scorer.py
# needs: torch numpy
"""Boxing: the judges' score of a round from the sequence of punches, by convolutions over time."""
import random
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

KINDS, LONGEST, BATCH = 9, 640, 16


class Bouts(Dataset):
    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        self.bouts = []
        for _ in range(count):
            length = int(np.clip(rng.lognormal(4.4, 0.45), 20, LONGEST))
            kinds = rng.integers(1, KINDS, length)
            force = rng.gamma(2.0, 1.0, (length, 3)).astype(np.float32)
            score = float(np.tanh((force[:, 0] * (kinds < 4)).mean() - 0.7))
            self.bouts.append((torch.from_numpy(kinds), torch.from_numpy(force), score))

    def __len__(self):
        return len(self.bouts)

    def __getitem__(self, index):
        return self.bouts[index]


def order_of(bouts, seed):
    """Batches of indices for one epoch."""
    rnd = random.Random(seed)
    order = list(range(len(bouts)))
    rnd.shuffle(order)
    return [order[i:i + BATCH] for i in range(0, len(order), BATCH)]


def gather(bouts):
    length = LONGEST
    kinds = torch.zeros(len(bouts), length, dtype=torch.long)
    force = torch.zeros(len(bouts), length, 3)
    for row, (k, f, _) in enumerate(bouts):
        kinds[row, :len(k)] = k
        force[row, :len(k)] = f
    return kinds, force, torch.tensor([s for _, _, s in bouts])


class Judge(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.kind = nn.Embedding(KINDS, width - 3, padding_idx=0)
        self.layers = nn.ModuleList([nn.Conv1d(width, width, 3, padding=2 ** i, dilation=2 ** i) for i in range(3)])
        self.score = nn.Linear(width, 1)

    def forward(self, kinds, force):
        there = (kinds > 0).float().unsqueeze(1)
        h = torch.cat([self.kind(kinds), force], 2).transpose(1, 2)
        for layer in self.layers:
            h = (h + F.relu(layer(h))) * there
        return torch.tanh(self.score(h.sum(2) / there.sum(2))).squeeze(1)


def main():
    torch.manual_seed(17)
    torch.set_num_threads(2)
    bouts = Bouts(800, 17)
    judge = Judge()
    optimizer = torch.optim.Adam(judge.parameters(), lr=1e-3)
    steps, begin = 0, time.perf_counter()
    for epoch in range(3):
        for kinds, force, score in DataLoader(bouts, batch_sampler=order_of(bouts, epoch), collate_fn=gather):
            loss = F.mse_loss(judge(kinds, force), score)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
        print(f"epoch {epoch + 1}: {loss.item():.4f}")
    print(f"{steps} steps, {1000 * (time.perf_counter() - begin) / steps:.1f} ms a step")


if __name__ == "__main__":
    main()
