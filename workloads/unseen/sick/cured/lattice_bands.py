# The same as lattice_bands.py beside the folder, with whole arrays joined.
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
    atoms, ends, bonds, gaps = zip(*crystals)
    sizes = np.array([len(some) for some in atoms])
    firsts = np.concatenate([[0], sizes.cumsum()[:-1]])
    joined = np.concatenate([some + first for some, first in zip(ends, firsts)], axis=1)
    return (torch.from_numpy(np.concatenate(atoms)), torch.from_numpy(joined[0]), torch.from_numpy(joined[1]),
            torch.from_numpy(np.concatenate(bonds)), torch.from_numpy(np.repeat(np.arange(len(sizes)), sizes)),
            torch.from_numpy(np.array(gaps)))


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
