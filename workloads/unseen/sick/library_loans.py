#!/usr/bin/env python3
# truth: worker_memory_growth
# about: all loans lie in a list of tuples made before the workers are forked; every look at one writes its reference count, so
# about: page after page of the parent's memory is copied into each worker as training goes on
# also: memory_leak
# cure: --packed
# gain: none
# needs: torch numpy
"""Which branch will a reader visit next?  From the last loans of readers of a city library."""
import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

BRANCHES, LOANS, TOGETHER = 40, 160, 4


def city(readers):
    """Loans in the order of readers, LOANS for each."""
    rng = np.random.default_rng(97)
    home = rng.integers(0, BRANCHES, readers)
    shape = (readers, LOANS)
    branch = np.where(rng.random(shape) < 0.6, home[:, None], rng.integers(0, BRANCHES, shape))
    return home, branch.ravel(), rng.integers(1, 60, readers * LOANS), rng.random(readers * LOANS)


class LoanList(Dataset):
    """Loans as the library's export gives them: (shelf mark, branch, days, fee)."""

    def __init__(self, home, branch, days, fee):
        self.home = home
        self.loans = [(f"QA{i:07d}.{b}", b + 1000, d + 1000, f)
                      for i, (b, d, f) in enumerate(zip(branch.tolist(), days.tolist(), fee.tolist()))]

    def __len__(self):
        return len(self.home)

    def __getitem__(self, reader):
        picked = self.loans[reader * LOANS:(reader + 1) * LOANS]
        where = torch.tensor([b - 1000 for _, b, _, _ in picked[::TOGETHER]])
        much = torch.tensor([[d / 1060.0, f] for _, _, d, f in picked])
        return where, much.view(-1, TOGETHER, 2).mean(1), int(self.home[reader])


class LoanColumns(Dataset):
    """The same loans as columns."""

    def __init__(self, home, branch, days, fee):
        self.home = home
        self.branch = branch
        self.much = np.stack([(days + 1000) / 1060.0, fee], axis=1).astype(np.float32)

    def __len__(self):
        return len(self.home)

    def __getitem__(self, reader):
        at = slice(reader * LOANS, (reader + 1) * LOANS)
        much = torch.from_numpy(self.much[at]).view(-1, TOGETHER, 2).mean(1)
        return torch.from_numpy(self.branch[at][::TOGETHER].copy()), much, int(self.home[reader])


class Visits(nn.Module):
    def __init__(self):
        super().__init__()
        self.branch = nn.Embedding(BRANCHES, 62)
        layer = nn.TransformerEncoderLayer(64, 4, 192, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.out = nn.Linear(64, BRANCHES)

    def forward(self, where, much):
        return self.out(self.encoder(torch.cat([self.branch(where), much], dim=2)).mean(1))


def worker_memory():
    """Private memory of the workers in MB, for the closing line."""
    import multiprocessing
    total = 0
    for child in multiprocessing.active_children():
        try:
            with open(f"/proc/{child.pid}/smaps_rollup") as f:
                total += sum(int(line.split()[1]) for line in f if line.startswith("Private_Dirty"))
        except OSError:
            pass
    return total / 1024


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=130)
    ap.add_argument("--packed", action="store_true")
    args = ap.parse_args()
    torch.manual_seed(43)
    data = (LoanColumns if args.packed else LoanList)(*city(9000))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=2, drop_last=True)
    model = Visits()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    recent, start, end, begin = 0.0, 0.0, 0.0, time.perf_counter()
    for step, (where, much, home) in zip(range(args.steps), loader):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(where, much), home)
        loss.backward()
        opt.step()
        recent = 0.9 * recent + 0.1 * loss.item()
        if step in (5, args.steps - 1):
            start, end = end, worker_memory()
    took = time.perf_counter() - begin
    print(f"loss {recent:.3f}; workers {start:.0f} -> {end:.0f} MB; {args.steps} steps, {1e3 * took / args.steps:.1f} ms each, {took:.2f} s")


if __name__ == "__main__":
    main()
