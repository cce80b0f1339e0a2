# truth: collate_bound
# about: the collate function fills the padded atom features, adjacency and mask of a batch of molecules number by number into tensors, which takes many times what fetching the molecules takes
# also: data_loading_bound
# cure: --collate arrays
# needs: torch
"""Formation energies of small molecules: a dense graph network; molecules are dicts of atoms and bonds."""
import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

FEATURES = 14


class Molecules(Dataset):
    """A random tree of atoms with a few rings closed, kept as arrays."""

    def __init__(self, count, seed):
        generator = np.random.default_rng(seed)
        self.items = []
        weights = generator.standard_normal(FEATURES).astype(np.float32)
        for _ in range(count):
            atoms = int(generator.integers(24, 29))
            features = generator.standard_normal((atoms, FEATURES)).astype(np.float32)
            parents = [int(generator.integers(max(0, i - 4), i)) for i in range(1, atoms)]
            bonds = [(i + 1, p) for i, p in enumerate(parents)] + [(0, atoms - 1), (2, atoms // 2)]
            bonds = np.array(bonds, dtype=np.int64)
            energy = float((features[bonds[:, 0]] * features[bonds[:, 1]]) .mean(0) @ weights)
            self.items.append({"atoms": features, "bonds": bonds, "energy": energy})

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def together(molecules):
    largest = max(len(m["atoms"]) for m in molecules)
    features = torch.zeros(len(molecules), largest, FEATURES)
    adjacency = torch.zeros(len(molecules), largest, largest)
    mask = torch.zeros(len(molecules), largest)
    for b, molecule in enumerate(molecules):
        for a, atom in enumerate(molecule["atoms"]):
            for f, value in enumerate(atom):
                features[b, a, f] = float(value)
            mask[b, a] = 1.0
        for i, j in molecule["bonds"]:
            adjacency[b, i, j] = 1.0
            adjacency[b, j, i] = 1.0
    return features, adjacency, mask, torch.tensor([m["energy"] for m in molecules])


def together_arrays(molecules):
    largest = max(len(m["atoms"]) for m in molecules)
    features = np.zeros((len(molecules), largest, FEATURES), np.float32)
    adjacency = np.zeros((len(molecules), largest, largest), np.float32)
    mask = np.zeros((len(molecules), largest), np.float32)
    for b, molecule in enumerate(molecules):
        atoms, bonds = molecule["atoms"], molecule["bonds"]
        features[b, :len(atoms)] = atoms
        mask[b, :len(atoms)] = 1.0
        adjacency[b, bonds[:, 0], bonds[:, 1]] = 1.0
        adjacency[b, bonds[:, 1], bonds[:, 0]] = 1.0
    energies = torch.tensor([m["energy"] for m in molecules])
    return torch.from_numpy(features), torch.from_numpy(adjacency), torch.from_numpy(mask), energies


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.own = nn.Linear(width, width)
        self.others = nn.Linear(width, width, bias=False)
        self.norm = nn.LayerNorm(width)

    def forward(self, x, adjacency):
        return self.norm(x + torch.relu(self.own(x) + adjacency @ self.others(x)))


class EnergyNet(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.enter = nn.Linear(FEATURES, width)
        self.layers = nn.ModuleList([Layer(width) for _ in range(3)])
        self.leave = nn.Sequential(nn.Linear(width, 48), nn.SiLU(), nn.Linear(48, 1))

    def forward(self, features, adjacency, mask):
        x = self.enter(features)
        for layer in self.layers:
            x = layer(x, adjacency)
        return (self.leave(x).squeeze(-1) * mask).sum(1) / mask.sum(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--collate", choices=("plain", "arrays"), default="plain")
    options = parser.parse_args()
    torch.manual_seed(2)
    loader = DataLoader(Molecules(1600, 2), batch_size=32, shuffle=True, drop_last=True,
                        collate_fn=together if options.collate == "plain" else together_arrays)
    model = EnergyNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    begin, cpu, steps = time.perf_counter(), time.process_time(), 0
    for epoch in range(2):
        total = 0.0
        for features, adjacency, mask, energies in loader:
            loss = nn.functional.smooth_l1_loss(model(features, adjacency, mask), energies)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += loss.item()
            steps += 1
        print(f"epoch {epoch}: {total / len(loader):.4f}")
    print(f"{steps} steps, {(time.perf_counter() - begin) / steps * 1e3:.1f} ms each, "
          f"{(time.process_time() - cpu) / steps * 1e3:.1f} ms of processor")


if __name__ == "__main__":
    main()
