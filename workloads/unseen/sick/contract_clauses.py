# truth: startup_bound
# about: at every start the word pieces are learned anew from the same contracts, merge by merge over the whole vocabulary in plain Python; the list of merges never changes and could be kept in a file, and the training after it is shorter than the wait
# cure: --pieces KEPT
# gain: none
# needs: torch
"""Sorts the clauses of contracts into kinds, over word pieces (byte pair encoding)."""
import argparse
import os
import random
import time

import torch
from torch import nn

KINDS, LENGTH = 6, 48
SOUNDS = ["an", "con", "de", "ent", "er", "fi", "gar", "in", "li", "men", "mor", "no", "per", "pre", "re", "sion",
          "sta", "ter", "ti", "tor", "tra", "um", "ver", "vi", "ex", "ob", "sub", "pact", "dict", "ject"]


def contracts(count, seed=17):
    dice = random.Random(seed)
    words = ["".join(SOUNDS[int(dice.random() * len(SOUNDS))] for _ in range(2 + int(dice.random() * 4)))
             for _ in range(9000)]
    clauses, kinds = [], []
    for _ in range(count):
        kind = int(dice.random() * KINDS)
        clauses.append([words[int(dice.random() ** 2 * 1500) * KINDS + kind] if dice.random() < 0.4
                        else words[int(dice.random() ** 2 * 9000)] for _ in range(20)])
        kinds.append(kind)
    return clauses, kinds


def join(pieces, pair):
    out, k = [], 0
    while k < len(pieces):
        if k + 1 < len(pieces) and pieces[k] == pair[0] and pieces[k + 1] == pair[1]:
            out.append(pieces[k] + pieces[k + 1])
            k += 2
        else:
            out.append(pieces[k])
            k += 1
    return out


def learn(clauses, merges):
    seen = {}
    for clause in clauses:
        for word in clause:
            seen[word] = seen.get(word, 0) + 1
    split = {word: list(word) for word in seen}
    learned = []
    for _ in range(merges):
        pairs = {}
        for word, pieces in split.items():
            for pair in zip(pieces, pieces[1:]):
                pairs[pair] = pairs.get(pair, 0) + seen[word]
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        learned.append(best)
        for word, pieces in split.items():
            if best[0] in pieces:
                split[word] = join(pieces, best)
    return learned


def encode(clauses, learned):
    rank = {pair: k for k, pair in enumerate(learned)}
    letters = sorted({letter for clause in clauses for word in clause for letter in word})
    ids = {piece: k + 1 for k, piece in enumerate(letters + [a + b for a, b in learned])}
    known = {}
    table = torch.zeros(len(clauses), LENGTH, dtype=torch.long)
    for row, clause in enumerate(clauses):
        line = []
        for word in clause:
            if word not in known:
                pieces = list(word)
                while len(pieces) > 1:
                    pair = min(zip(pieces, pieces[1:]), key=lambda p: rank.get(p, len(rank)))
                    if pair not in rank:
                        break
                    pieces = join(pieces, pair)
                known[word] = [ids[piece] for piece in pieces]
            line += known[word]
        line = line[:LENGTH]
        table[row, : len(line)] = torch.tensor(line)
    return table, len(ids) + 1


class Clauses(nn.Module):
    def __init__(self, pieces, width=96):
        super().__init__()
        self.pieces = nn.Embedding(pieces, width, padding_idx=0)
        self.net = nn.Sequential(nn.Conv1d(width, 160, 5, padding=2), nn.ReLU(),
                                 nn.Conv1d(160, 160, 5, padding=2), nn.ReLU(), nn.AdaptiveMaxPool1d(1), nn.Flatten(),
                                 nn.Linear(160, KINDS))

    def forward(self, x):
        return self.net(self.pieces(x).transpose(1, 2))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--pieces", metavar="FILE", help="merges that an earlier run kept")
    ap.add_argument("--keep", metavar="FILE", help="keep the merges for later runs")
    ap.add_argument("--merges", type=int, default=600)
    ap.add_argument("--steps", type=int, default=110)
    a = ap.parse_args()
    torch.manual_seed(12)
    start = time.perf_counter()
    clauses, kinds = contracts(4000)
    if a.pieces:
        here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cured", "contract_clauses.merges")
        with open(here if a.pieces == "KEPT" else a.pieces) as f:
            learned = [tuple(line.split()) for line in f]
    else:
        learned = learn(clauses, a.merges)
    if a.keep:
        with open(a.keep, "w") as f:
            f.writelines(f"{x} {y}\n" for x, y in learned)
    table, pieces = encode(clauses, learned)
    kinds = torch.tensor(kinds)
    print(f"{len(learned)} merges, {pieces} pieces, after {time.perf_counter() - start:.2f} s")
    model = Clauses(pieces)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    begin, total = time.perf_counter(), 0.0
    for step in range(1, a.steps + 1):
        pick = torch.randint(0, len(table), (64,))
        loss = nn.functional.cross_entropy(model(table[pick]), kinds[pick])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        total = total + loss.detach()
        if step % 55 == 0:
            print(f"step {step}: loss {float(total) / step:.4f}")
    took = time.perf_counter() - begin
    print(f"{a.steps} steps, {took:.2f} s, {1e3 * took / a.steps:.1f} ms a step")


if __name__ == "__main__":
    main()
