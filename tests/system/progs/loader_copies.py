"""A loader whose two workers do a known thing to memory: they write to MIB MiB of what they
inherited (touch), read it (read), or allocate as much themselves (allocate)."""

import sys

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

MIB = 64
what = sys.argv[1]


class Block(Dataset):
    def __init__(self):
        self.bytes = np.ones(MIB << 20, dtype=np.uint8)
        self.records = [(i, str(i)) for i in range(20_000)]
        self.kept = []

    def __len__(self):
        return MIB

    def __getitem__(self, i):
        part = self.bytes[i << 20 : (i + 1) << 20]
        if what == "touch":
            part[::4096] += 1
        elif what == "allocate":
            self.kept.append(part.copy())
        return torch.tensor(int(part[::4096].sum()))


if __name__ == "__main__":
    torch.set_num_threads(1)
    for batch in DataLoader(Block(), batch_size=4, num_workers=2):
        assert len(batch) == 4
