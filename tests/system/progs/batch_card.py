"""Batches of many sizes on a card that is played: its allocator's peak goes with them, 1 GiB and
4,000 bytes a byte, and never falls, as torch's does not."""

import time

import sonde._sonde
import torch
from torch.utils.data import DataLoader, Dataset

GIB, EACH = 2**30, 4000
peak = 0


def stats():
    return peak, peak + GIB // 4


class Graphs(Dataset):
    def __len__(self):
        return 60 * 4

    def __getitem__(self, index):
        batch = index // 4
        return torch.ones(1000 + 60 * batch + batch * 7919 % 1500, 8)


sonde._sonde.watch_card(stats)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), 1e-6)
for x in DataLoader(Graphs(), batch_size=4, collate_fn=torch.cat):
    peak = max(peak, GIB + EACH * x.numel() * 4)
    model(x).mean().backward()
    optimizer.step()
    time.sleep(0.02)
