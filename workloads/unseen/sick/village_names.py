# truth: startup_bound
# about: before its first step every run works out anew, in pure Python, which of the old spellings are neighbours by edit distance, though the list of names never changes; the neighbours could be kept in a file
# cure: cured/village_names.py
# gain: none
# needs: torch numpy
"""Matches old spellings of village names: an encoder of letters, trained with hard negatives.

The hard negatives of a name are the names of other villages that are nearest to it by edit distance.
"""
import random
import time

import numpy as np
import torch
from torch import nn

VILLAGES, SPELLINGS, LETTERS, LONGEST = 300, 3, "abcdefghijklmnoprstuvwyz", 14
STEPS, BATCH, NEAR = 60, 48, 6


def write_names(seed):
    rng = random.Random(seed)
    endings = ["heim", "dorf", "au", "bach", "stedt", "by", "thorp", "ow"]
    names = []
    for village in range(VILLAGES):
        stem = "".join(rng.choice("bdfghklmnrstw") + rng.choice("aeiou") for _ in range(3))
        name = stem + rng.choice(endings)
        for _ in range(SPELLINGS):
            letters = list(name)
            for _ in range(2):
                letters[rng.randrange(len(letters))] = rng.choice(LETTERS)
            names.append(("".join(letters)[:LONGEST], village))
    return names


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        corner, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            corner, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, corner + (x != y))
    return row[-1]


def neighbours(names):
    count = len(names)
    distance = np.full((count, count), 99, np.uint8)
    for i, (a, village) in enumerate(names):
        for j in range(i + 1, count):
            b, other = names[j]
            if village != other:
                distance[i, j] = distance[j, i] = edit_distance(a, b)
    return np.argsort(distance, 1, kind="stable")[:, :NEAR]


class Letters(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.letter = nn.Embedding(len(LETTERS) + 1, 48)
        self.read = nn.GRU(48, width, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * width, 64)

    def forward(self, codes):
        x, _ = self.read(self.letter(codes))
        return nn.functional.normalize(self.out(x.mean(1)), dim=1)


def main():
    torch.manual_seed(21)
    names = write_names(21)
    near = torch.from_numpy(neighbours(names).astype(np.int64))
    codes = torch.zeros(len(names), LONGEST, dtype=torch.long)
    for i, (name, _) in enumerate(names):
        codes[i, :len(name)] = torch.tensor([LETTERS.index(c) + 1 for c in name])
    model = Letters()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    began = time.perf_counter()
    for step in range(STEPS):
        village = torch.randint(VILLAGES, (BATCH,))
        one = village * SPELLINGS + torch.randint(SPELLINGS, (BATCH,))
        two = village * SPELLINGS + torch.randint(SPELLINGS, (BATCH,))
        wrong = near[one].flatten()
        out = model(codes[torch.cat([one, two, wrong])])
        a, b, c = out[:BATCH], out[BATCH:2 * BATCH], out[2 * BATCH:].view(BATCH, NEAR, -1)
        scores = torch.cat([(a * b).sum(1, keepdim=True), torch.einsum("bw,bnw->bn", a, c)], 1) * 10
        loss = nn.functional.cross_entropy(scores, torch.zeros(BATCH, dtype=torch.long))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 19:
            print(f"step {step + 1} loss {loss.item():.3f}")
    took = time.perf_counter() - began
    print(f"{STEPS} steps, {1000 * took / STEPS:.1f} ms a step")


if __name__ == "__main__":
    main()
