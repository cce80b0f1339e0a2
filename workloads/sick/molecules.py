# truth: collate_bound
# about: the collate function merges the graphs edge by edge and node by node into tensors, element by element
# also: data_loading_bound
# cure: --merge concat
# needs: torch numpy cores:2
"""Message passing on random polymers (pickled list of graphs)."""
import argparse
import pathlib
import pickle
import tempfile

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

ATOM_FEATURES = 12


def random_molecules(count, seed=5):
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(count):
        n = int(rng.integers(60, 90))
        atoms = rng.standard_normal((n, ATOM_FEATURES)).astype(np.float32)
        chain = np.stack([np.arange(n - 1), np.arange(1, n)])
        extra = rng.integers(0, n, size=(2, n // 2))
        bonds = np.concatenate([chain, extra, chain[::-1], extra[::-1]], axis=1).astype(np.int64)
        out.append({"x": atoms, "edges": bonds, "y": float(atoms[:, 0].sum())})
    return out


class Molecules(torch.utils.data.Dataset):
    def __init__(self, file):
        with open(file, "rb") as f:
            self.graphs = pickle.load(f)

    def __getitem__(self, i):
        g = self.graphs[i]
        return torch.from_numpy(g["x"]), torch.from_numpy(g["edges"]), g["y"]

    def __len__(self):
        return len(self.graphs)


def merge_graphs(items):
    nodes = sum(len(x) for x, _, _ in items)
    n_edges = sum(e.shape[1] for _, e, _ in items)
    feats = torch.zeros(nodes, ATOM_FEATURES)
    edges = torch.zeros(2, n_edges, dtype=torch.long)
    owner = torch.zeros(nodes, dtype=torch.long)
    target = torch.zeros(len(items))
    node, k = 0, 0
    for g, (x, e, y) in enumerate(items):
        for j in range(e.shape[1]):
            edges[0, k] = e[0, j] + node
            edges[1, k] = e[1, j] + node
            k += 1
        for row in x:
            feats[node] = row
            owner[node] = g
            node += 1
        target[g] = y
    return feats, edges, owner, target


def concat_graphs(items):
    sizes = torch.tensor([len(x) for x, _, _ in items])
    starts = (torch.cumsum(sizes, 0) - sizes).tolist()
    return (
        torch.cat([x for x, _, _ in items]),
        torch.cat([e + s for (_, e, _), s in zip(items, starts)], dim=1),
        torch.repeat_interleave(torch.arange(len(items)), sizes),
        torch.tensor([y for _, _, y in items]),
    )


class MPNN(nn.Module):
    def __init__(self, width=32, rounds=2):
        super().__init__()
        self.inp = nn.Linear(ATOM_FEATURES, width)
        self.msg = nn.ModuleList(nn.Linear(width, width) for _ in range(rounds))
        self.upd = nn.ModuleList(nn.GRUCell(width, width) for _ in range(rounds))
        self.out = nn.Linear(width, 1)

    def forward(self, x, edges, owner, n_graphs):
        h = F.relu(self.inp(x))
        for msg, upd in zip(self.msg, self.upd):
            m = torch.zeros_like(h).index_add(0, edges[1], msg(h)[edges[0]])
            h = upd(m, h)
        pooled = torch.zeros(n_graphs, h.shape[1]).index_add(0, owner, h)
        return self.out(pooled).squeeze(1)


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--merge", default="loop", choices=("loop", "concat"))
    cli.add_argument("--epochs", type=int, default=4)
    cfg = cli.parse_args()
    torch.manual_seed(2)
    with tempfile.TemporaryDirectory() as d:
        file = pathlib.Path(d) / "molecules.pkl"
        file.write_bytes(pickle.dumps(random_molecules(1152)))
        data = Molecules(file)
        loader = DataLoader(data, batch_size=48, shuffle=True, num_workers=2, persistent_workers=True,
                            collate_fn=merge_graphs if cfg.merge == "loop" else concat_graphs)
        net = MPNN()
        adam = torch.optim.Adam(net.parameters(), 1e-3)
        for epoch in range(cfg.epochs):
            losses = []
            for feats, edges, owner, target in loader:
                adam.zero_grad()
                loss = F.smooth_l1_loss(net(feats, edges, owner, len(target)), target)
                loss.backward()
                adam.step()
                losses.append(loss.item())
            print("epoch", epoch, "loss", round(sum(losses) / len(losses), 4))
