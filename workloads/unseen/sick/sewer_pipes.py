# truth: startup_bound
# about: how central each manhole lies in the network (Brandes' search from every node, in plain Python) is worked out anew at every start, though the network never changes; that takes longer than the training behind it
# cure: cured/sewer_pipes.py
# gain: none
# needs: torch numpy
"""Predicts the inflow at manholes of a sewer network from the gauges around them.

Message passing along the pipes, both ways; the place of a manhole in the
network (closeness and betweenness) goes in beside its gauges.
"""
import collections
import csv
import os
import tempfile

import numpy as np
import torch
from torch import nn

MANHOLES = 1800
STEPS = 150
STORMS = 10


def write_network(path, seed=17):
    """The survey office's export: one pipe a line."""
    rng = np.random.default_rng(seed)
    with open(path, "w", newline="") as f:
        out = csv.writer(f)
        out.writerow(["from", "to", "diameter_mm"])
        for m in range(1, MANHOLES):
            out.writerow([m, int(rng.integers(max(0, m - 30), m)), int(rng.choice([200, 300, 500]))])
        for _ in range(MANHOLES):
            a, b = rng.integers(0, MANHOLES, 2)
            if a != b and abs(int(a) - int(b)) < 200:
                out.writerow([int(a), int(b), 300])


def read_network(path):
    near = collections.defaultdict(list)
    with open(path, newline="") as f:
        for row in csv.DictReader(f):
            a, b = int(row["from"]), int(row["to"])
            near[a].append(b)
            near[b].append(a)
    return near


def place_in_network(near):
    closeness = [0.0] * MANHOLES
    between = [0.0] * MANHOLES
    for start in range(MANHOLES):
        hops, ways = {start: 0}, collections.Counter({start: 1})
        before, order = collections.defaultdict(list), []
        queue = collections.deque([start])
        while queue:
            here = queue.popleft()
            order.append(here)
            for there in near[here]:
                if there not in hops:
                    hops[there] = hops[here] + 1
                    queue.append(there)
                if hops[there] == hops[here] + 1:
                    ways[there] += ways[here]
                    before[there].append(here)
        closeness[start] = (len(order) - 1) / max(1, sum(hops.values()))
        share = dict.fromkeys(order, 0.0)
        for there in reversed(order):
            for here in before[there]:
                share[here] += ways[here] / ways[there] * (1.0 + share[there])
            if there != start:
                between[there] += share[there]
    place = np.array([closeness, between], dtype=np.float32).T
    return (place - place.mean(0)) / place.std(0)


class Along(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.own, self.other = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, h, src, dst, degree):
        gathered = torch.zeros_like(h).index_add_(1, dst, self.other(h)[:, src])
        return torch.relu(self.own(h) + gathered / degree)


class Inflow(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.enter = nn.Linear(5, width)
        self.layers = nn.ModuleList([Along(width) for _ in range(2)])
        self.leave = nn.Linear(width, 1)

    def forward(self, x, *pipes):
        h = self.enter(x)
        for layer in self.layers:
            h = h + layer(h, *pipes)
        return self.leave(h).squeeze(-1)


def main():
    torch.manual_seed(1)
    gen = torch.Generator().manual_seed(2)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "pipes.csv")
        write_network(path)
        near = read_network(path)
    place = torch.from_numpy(place_in_network(near))
    src = torch.tensor([a for a in range(MANHOLES) for _ in near[a]])
    dst = torch.tensor([b for a in range(MANHOLES) for b in near[a]])
    degree = torch.bincount(dst, minlength=MANHOLES).clamp(min=1).float().unsqueeze(1)

    model = Inflow()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(1, STEPS + 1):
        gauges = torch.randn(STORMS, MANHOLES, 3, generator=gen)
        x = torch.cat((gauges, place.expand(STORMS, -1, -1)), 2)
        rain = gauges.sum(2)
        inflow = rain + 0.3 * torch.zeros_like(rain).index_add_(1, dst, rain[:, src]) + place[:, 1]
        loss = (model(x, src, dst, degree) - inflow).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 30 == 0:
            print(f"step {step}: {loss.item():.3f}")


if __name__ == "__main__":
    main()
