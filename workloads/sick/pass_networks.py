#!/usr/bin/env python3
# truth: collate_bound
# about: the function that puts matches together writes every pass into the batch's tensors one element at a time and lets the node table grow by a concatenation per player; reading a match costs next to nothing
# also: data_loading_bound preprocessing_bound
# cure: cured/pass_networks.py
# whatif: collate=840
# needs: torch numpy
"""Football: who wins, from the graph of passes between the players of a match. Two rounds of message passing."""
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

PLAYERS, FEATURES, HIDDEN = 22, 12, 64


class Matches(Dataset):
    """Passes as (from, to, weight), players as feature rows."""

    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        self.matches = []
        for _ in range(count):
            passes = int(rng.integers(120, 220))
            ends = rng.integers(0, PLAYERS, (passes, 2))
            weights = rng.random(passes).astype(np.float32)
            players = rng.normal(0, 1, (PLAYERS, FEATURES)).astype(np.float32)
            home = weights[ends[:, 0] < PLAYERS // 2].sum()
            self.matches.append((players, ends, weights, int(home > weights.sum() / 2)))

    def __len__(self):
        return len(self.matches)

    def __getitem__(self, index):
        return self.matches[index]


def join_matches(matches):
    """One batch: B x 22 x 22 pass matrices, B x 22 x 12 players, B results."""
    passes = torch.zeros(len(matches), PLAYERS, PLAYERS)
    players = torch.zeros(0, FEATURES)
    results = torch.zeros(0, dtype=torch.long)
    for number, (table, ends, weights, result) in enumerate(matches):
        for (giver, taker), weight in zip(ends, weights):
            passes[number, giver, taker] += float(weight)
        for row in table:
            players = torch.cat([players, torch.from_numpy(row)[None]])
        results = torch.cat([results, torch.tensor([result])])
    return passes, players.view(len(matches), PLAYERS, FEATURES), results


class PassNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(FEATURES, HIDDEN)
        self.give = nn.ModuleList([nn.Linear(HIDDEN, HIDDEN) for _ in range(2)])
        self.take = nn.ModuleList([nn.Linear(HIDDEN, HIDDEN) for _ in range(2)])
        self.leave = nn.Linear(2 * HIDDEN, 2)

    def forward(self, passes, players):
        degree = passes.sum(2, keepdim=True) + 1
        h = torch.relu(self.enter(players))
        for give, take in zip(self.give, self.take):
            h = torch.relu(h + give(passes @ h / degree) + take(passes.transpose(1, 2) @ h / degree))
        sides = h.view(len(h), 2, PLAYERS // 2, HIDDEN).mean(2)
        return self.leave(sides.flatten(1))


def season(loader, net, optimizer):
    for passes, players, results in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(passes, players), results)
        loss.backward()
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    torch.manual_seed(11)
    torch.set_num_threads(1)
    loader = DataLoader(Matches(1600, 11), batch_size=32, shuffle=True, collate_fn=join_matches)
    net = PassNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    begin = time.perf_counter()
    for number in range(2):
        print(f"season {number + 1}: loss {season(loader, net, optimizer):.3f}")
    print(f"{1000 * (time.perf_counter() - begin) / (2 * len(loader)):.1f} ms a step")
