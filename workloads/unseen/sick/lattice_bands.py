# truth: collate_bound
# about: the collate function joins 48 crystals into one graph by appending every number of every node and edge to Python lists and makes tensors of the lists; the samples themselves are ready in memory
# also: data_loading_bound preprocessing_bound
# cure: cured/lattice_bands.py
# whatif: collate=166
# needs: torch numpy
"""Predicts the band gap of crystals with message passing on their graphs of atoms and bonds."""
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

NODE, EDGE, BATCH, EPOCHS = 12, 6, 48, 14


class Crystals(Dataset):
    def __init__(self, count=1440):
        rng = np.random.default_rng(8)
        self.crystals = []
        for _ in range(count):
            atoms = int(rng.integers(12, 30))
            bonds = atoms * 8
            nodes = rng.normal(size=(atoms, NODE)).astype(np.float32)
            ends = rng.integers(0, atoms, (2, bonds))
            edges = rng.normal(size=(bonds, EDGE)).astype(np.float32)
            gap = np.float32(np.tanh(nodes[:, 0]).mean() + edges[:, 1].mean())
            self.crystals.append((nodes, ends, edges, gap))

    def __len__(self):
        return len(self.crystals)

    def __getitem__(self, i):
        return self.crystals[i]


def join(crystals):
    nodes, sources, targets, edges, owner, gaps = [], [], [], [], [], []
    for number, (atoms, ends, bonds, gap) in enumerate(crystals):
        first = len(nodes)
        for atom in atoms:
            nodes.append([float(value) for value in atom])
            owner.append(number)
        for k in range(ends.shape[1]):
            sources.append(first + int(ends[0, k]))
            targets.append(first + int(ends[1, k]))
            edges.append([float(value) for value in bonds[k]])
        gaps.append(float(gap))
    return (torch.tensor(nodes), torch.tensor(sources), torch.tensor(targets), torch.tensor(edges),
            torch.tensor(owner), torch.tensor(gaps))


class Bands(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.enter = nn.Linear(NODE, width)
        self.messages = nn.ModuleList(nn.Linear(width + EDGE, width) for _ in range(2))
        self.leave = nn.Linear(width, 1)

    def forward(self, nodes, sources, targets, edges, owner, graphs):
        state = torch.relu(self.enter(nodes))
        for layer in self.messages:
            message = torch.relu(layer(torch.cat([state[sources], edges], 1)))
            state = state + torch.zeros_like(state).index_add(0, targets, message) / 8
        pooled = torch.zeros(graphs, state.shape[1]).index_add(0, owner, state)
        return self.leave(pooled / 20).squeeze(1)


def main():
    torch.manual_seed(8)
    loader = DataLoader(Crystals(), batch_size=BATCH, shuffle=True, num_workers=2, collate_fn=join,
                        persistent_workers=True)
    model = Bands()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    steps, error = 0, 0.0
    began = time.perf_counter()
    for epoch in range(EPOCHS):
        for nodes, sources, targets, edges, owner, gaps in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(nodes, sources, targets, edges, owner, len(gaps)), gaps)
            loss.backward()
            optimizer.step()
            error += loss.item()
            steps += 1
    took = time.perf_counter() - began
    print("%d steps, mean error %.4f, %.1f ms per step" % (steps, error / steps, took / steps * 1e3))


if __name__ == "__main__":
    main()
