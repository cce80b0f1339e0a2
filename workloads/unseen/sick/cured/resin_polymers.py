# The program beside it, cured; the arrays of the molecules are joined as arrays.
"""Glass transition of resins from their monomers, with a small message passing network."""
import argparse
import os
import shutil
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

FEATURES = 32


def synthesise(path, count, seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(32, 44, count)
    first = np.concatenate([[0], np.cumsum(sizes)])
    atoms = rng.normal(size=(first[-1], FEATURES)).astype(np.float32)
    bonds, bond_first = [], [0]
    for size in sizes:
        chain = np.stack([np.arange(size - 1), np.arange(1, size)])
        rings = rng.integers(0, size, (2, size // 2))
        one_way = np.concatenate([chain, rings], 1)
        both = np.concatenate([one_way, one_way[::-1]], 1)
        bonds.append(both)
        bond_first.append(bond_first[-1] + both.shape[1])
    target = np.array([atoms[a:b, 0].mean() * 3 + atoms[a:b, 1].std()
                       for a, b in zip(first[:-1], first[1:])], dtype=np.float32)
    np.savez(path, atoms=atoms, first=first, bonds=np.concatenate(bonds, 1),
             bond_first=np.array(bond_first), target=target)


class Monomers(Dataset):
    def __init__(self, path):
        with np.load(path) as data:
            self.atoms = data["atoms"]
            self.first = data["first"]
            self.bonds = data["bonds"]
            self.bond_first = data["bond_first"]
            self.target = data["target"]

    def __len__(self):
        return len(self.target)

    def __getitem__(self, i):
        return (self.atoms[self.first[i]:self.first[i + 1]],
                self.bonds[:, self.bond_first[i]:self.bond_first[i + 1]],
                self.target[i])


def join_graphs(molecules):
    """One large graph of all molecules; `owner` says whose atom it is."""
    sizes = np.array([len(atoms) for atoms, _, _ in molecules])
    offsets = np.cumsum(sizes) - sizes
    features = np.concatenate([atoms for atoms, _, _ in molecules])
    edges = np.concatenate([bonds + offset for (_, bonds, _), offset in zip(molecules, offsets)], 1)
    owner = np.repeat(np.arange(len(molecules)), sizes)
    values = np.array([value for _, _, value in molecules], dtype=np.float32)
    return (torch.from_numpy(features), torch.from_numpy(edges),
            torch.from_numpy(owner), torch.from_numpy(values))


class Message(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.own = nn.Linear(width, width)
        self.other = nn.Linear(width, width)

    def forward(self, x, edges):
        gathered = torch.zeros_like(x).index_add(0, edges[1], self.other(x)[edges[0]])
        return torch.relu(self.own(x) + gathered / 4)


class ResinNet(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.enter = nn.Linear(FEATURES, width)
        self.layers = nn.ModuleList(Message(width) for _ in range(depth))
        self.leave = nn.Linear(width, 1)

    def forward(self, x, edges, owner, count):
        x = self.enter(x)
        for layer in self.layers:
            x = layer(x, edges)
        pooled = torch.zeros(count, x.shape[1]).index_add(0, owner, x)
        return self.leave(pooled / 38).squeeze(1)


def run_epoch(net, loader, optimizer):
    losses = []
    for features, edges, owner, values in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(features, edges, owner, len(values)), values)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--molecules", type=int, default=3200)
    parser.add_argument("--batch", type=int, default=80)
    parser.add_argument("--width", type=int, default=40)
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=23)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    folder = tempfile.mkdtemp(prefix="resin_")
    try:
        path = os.path.join(folder, "monomers.npz")
        synthesise(path, options.molecules, options.seed)
        loader = DataLoader(Monomers(path), batch_size=options.batch, shuffle=True,
                            collate_fn=join_graphs)
        net = ResinNet(options.width, options.depth)
        optimizer = torch.optim.Adam(net.parameters(), lr=options.lr)
        for epoch in range(options.epochs):
            print(f"epoch {epoch + 1}: mse {run_epoch(net, loader, optimizer):.4f}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
