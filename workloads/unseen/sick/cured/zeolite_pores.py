# truth: collate_bound
# about: the collate function walks over every bond and every atom of every crystal in Python and fills lists, which takes many times as long as fetching the crystals and longer than the training step
# also: data_loading_bound preprocessing_bound
# cure: cured/zeolite_pores.py
# whatif: collate=210
# needs: torch numpy
"""Pore volume of zeolite frameworks from their bond graphs (one round of message passing)."""
from collections import namedtuple

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

Framework = namedtuple("Framework", "atoms src dst length volume")
Packed = namedtuple("Packed", "atoms src dst length owner volume")

FEATURES = 128
N_FRAMEWORKS = 480
BATCH = 32
EPOCHS = 22


def build_framework(rng):
    n = int(rng.integers(40, 72))
    atoms = rng.normal(size=(n, FEATURES)).astype(np.float32)
    bonds = n * 8
    src = rng.integers(0, n, size=bonds)
    dst = (src + rng.integers(1, 12, size=bonds)) % n
    length = rng.uniform(1.5, 3.4, size=bonds).astype(np.float32)
    volume = np.float32(atoms[:, :3].mean() * 4 + length.mean())
    return Framework(atoms, src, dst, length, volume)


class Frameworks(Dataset):
    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        self.items = [build_framework(rng) for _ in range(count)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        f = self.items[i]
        # thermal jitter of the bond lengths
        jitter = np.random.default_rng(i).normal(scale=0.01, size=f.length.shape).astype(np.float32)
        return f._replace(length=f.length + jitter)


def pack(frameworks):
    """One big disconnected graph out of many."""
    counts = [len(f.atoms) for f in frameworks]
    offsets = np.cumsum([0] + counts[:-1])
    return Packed(torch.from_numpy(np.concatenate([f.atoms for f in frameworks])),
                  torch.from_numpy(np.concatenate([f.src + o for f, o in zip(frameworks, offsets)])),
                  torch.from_numpy(np.concatenate([f.dst + o for f, o in zip(frameworks, offsets)])),
                  torch.from_numpy(np.concatenate([f.length for f in frameworks])),
                  torch.from_numpy(np.repeat(np.arange(len(frameworks)), counts)),
                  torch.from_numpy(np.array([f.volume for f in frameworks])))


class PoreNet(nn.Module):
    def __init__(self, width=12, centres=4):
        super().__init__()
        self.register_buffer("centres", torch.linspace(1.4, 3.5, centres))
        self.embed = nn.Linear(FEATURES, width)
        self.message = nn.ModuleList([nn.Linear(width + centres, width) for _ in range(1)])
        self.update = nn.ModuleList([nn.Linear(2 * width, width) for _ in range(1)])
        self.head = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, g):
        h = self.embed(g.atoms)
        rbf = torch.exp(-4.0 * (g.length[:, None] - self.centres) ** 2)
        for message, update in zip(self.message, self.update):
            m = torch.relu(message(torch.cat([h[g.src], rbf], 1)))
            pooled = torch.zeros_like(h).index_add_(0, g.dst, m)
            h = h + torch.relu(update(torch.cat([h, pooled / 8], 1)))
        total = torch.zeros(len(g.volume), h.shape[1]).index_add_(0, g.owner, h)
        return self.head(total / 56).squeeze(1)


def main():
    torch.manual_seed(4)
    torch.set_num_threads(1)
    loader = DataLoader(Frameworks(N_FRAMEWORKS, 11), batch_size=BATCH, shuffle=True, num_workers=2,
                        collate_fn=pack, persistent_workers=True)
    net = PoreNet()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    for epoch in range(EPOCHS):
        total = 0.0
        for g in loader:
            loss = nn.functional.mse_loss(net(g), g.volume)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        print(f"epoch {epoch}: mse {total / len(loader):.4f}")


if __name__ == "__main__":
    main()
