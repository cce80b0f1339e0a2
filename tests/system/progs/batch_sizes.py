"""Batches of many sizes, with memory that goes with them in a known way.

    batch_sizes.py graphs|padded BATCHES [LARGEST]

graphs: samples side by side, so many nodes each; a step holds FACTOR times the bytes of its batch.
padded: sequences in one tensor, as long as the longest; a step also holds samples × length²
floats, as attention does. LARGEST: the last batch has that many times the nodes of others.
"""

import sys
from types import SimpleNamespace

import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

FACTOR, WIDTH, BATCH = 24, 64, 16
kind, batches = sys.argv[1], int(sys.argv[2])
largest = float(sys.argv[3]) if len(sys.argv) > 3 else 0


class Graphs(Dataset):
    def __len__(self):
        return batches * BATCH

    def __getitem__(self, index):
        nodes = 200 + (index * 7919) % 1200
        nodes += (index // BATCH * 331) % 700  # whole batches differ too
        if largest and index >= len(self) - BATCH:
            nodes = int(1000 * largest)
        return torch.ones(nodes, WIDTH)


class Sequences(Dataset):
    def __len__(self):
        return batches * BATCH

    def __getitem__(self, index):
        return torch.ones(64 + (index // BATCH * 37) % 448 - index % 3, 1)


def join(samples):
    return SimpleNamespace(x=torch.cat(samples), sizes=[len(s) for s in samples])


def pad(samples):
    return pad_sequence(samples, batch_first=True)


data, collate = (Graphs(), join) if kind == "graphs" else (Sequences(), pad)
model = torch.nn.Linear(WIDTH if kind == "graphs" else 1, 1)
optimizer = torch.optim.SGD(model.parameters(), 1e-6)
for batch in DataLoader(data, batch_size=BATCH, collate_fn=collate):
    x = batch.x if kind == "graphs" else batch
    if kind == "graphs":
        held = torch.ones(FACTOR * x.numel())
    else:
        held = torch.ones(BATCH, x.shape[1], x.shape[1])
    loss = model(x).mean() + 0 * held[:1].mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    del held
    print(x.numel() * 4, flush=True)
