# truth: collate_bound
# about: the collate function writes the batch's adjacency and atom features one element at a time from Python, which costs far more than fetching the graphs or training on them
# also: data_loading_bound preprocessing_bound
# cure: --collate rows
# whatif: collate=30
# needs: torch numpy
"""Predicts the glass transition of polymer chains from their repeat unit's graph.

Graphs have 16 to 48 atoms; a dense message passing network works on padded batches.
"""
import argparse
import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the workers need the cores too

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

KINDS = 12


class Polymers(Dataset):
    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        self.graphs = []
        for _ in range(count):
            atoms = int(rng.integers(16, 49))
            kinds = rng.integers(0, KINDS, atoms)
            chain = np.stack([np.arange(atoms - 1), np.arange(1, atoms)])
            rings = rng.integers(0, atoms, (2, atoms // 2))
            bonds = np.concatenate([chain, rings], axis=1)
            bonds = np.concatenate([bonds, bonds[::-1]], axis=1)
            glass = float((kinds < 4).mean() * 2 - rings.shape[1] / 24 + rng.normal(0, 0.05))
            self.graphs.append((torch.from_numpy(kinds), torch.from_numpy(bonds.copy()), glass))

    def __len__(self):
        return len(self.graphs)

    def __getitem__(self, i):
        return self.graphs[i]


def collate_atoms(graphs):
    most = max(len(kinds) for kinds, _, _ in graphs)
    nodes = torch.zeros(len(graphs), most, KINDS)
    bonds = torch.zeros(len(graphs), most, most)
    mask = torch.zeros(len(graphs), most)
    glass = torch.zeros(len(graphs))
    for g, (kinds, pairs, value) in enumerate(graphs):
        for atom, kind in enumerate(kinds):
            nodes[g, atom, kind] = 1
            mask[g, atom] = 1
        for a, b in pairs.t():
            bonds[g, a, b] = 1
        glass[g] = value
    return nodes, bonds, mask, glass


def collate_rows(graphs):
    most = max(len(kinds) for kinds, _, _ in graphs)
    nodes = torch.zeros(len(graphs), most, KINDS)
    bonds = torch.zeros(len(graphs), most, most)
    mask = torch.zeros(len(graphs), most)
    for g, (kinds, pairs, _) in enumerate(graphs):
        nodes[g, :len(kinds)] = nn.functional.one_hot(kinds, KINDS).float()
        mask[g, :len(kinds)] = 1
        bonds[g, pairs[0], pairs[1]] = 1
    return nodes, bonds, mask, torch.tensor([value for _, _, value in graphs])


class Messages(nn.Module):
    def __init__(self, width, rounds):
        super().__init__()
        self.embed = nn.Linear(KINDS, width)
        self.send = nn.ModuleList(nn.Linear(width, width) for _ in range(rounds))
        self.keep = nn.ModuleList(nn.Linear(width, width) for _ in range(rounds))
        self.head = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, nodes, bonds, mask):
        bonds = bonds / bonds.sum(dim=2, keepdim=True).clamp(min=1)
        h = self.embed(nodes)
        for send, keep in zip(self.send, self.keep):
            h = torch.relu(keep(h) + bonds @ send(h))
        h = (h * mask[..., None]).sum(dim=1) / mask.sum(dim=1, keepdim=True)
        return self.head(h)[:, 0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--collate", choices=("atoms", "rows"), default="atoms")
    parser.add_argument("--epochs", type=int, default=9)
    args = parser.parse_args()
    torch.manual_seed(11)
    torch.set_num_threads(1)
    collate = {"atoms": collate_atoms, "rows": collate_rows}[args.collate]
    loader = DataLoader(Polymers(1600, 11), batch_size=32, shuffle=True, num_workers=2, collate_fn=collate,
                        persistent_workers=True)
    net = Messages(64, 3)
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3)
    begin, steps = time.perf_counter(), 0
    for epoch in range(args.epochs):
        total = 0.0
        for nodes, bonds, mask, glass in loader:
            loss = nn.functional.mse_loss(net(nodes, bonds, mask), glass)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            steps += 1
        print("epoch %d: loss %.4f" % (epoch, total / len(loader)))
    print("%.2f ms a step" % ((time.perf_counter() - begin) / steps * 1e3))


if __name__ == "__main__":
    main()
