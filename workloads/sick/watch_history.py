# truth: worker_memory_growth
# about: the watch histories are Python lists of tuples (some 180 MB of small objects), so the forked loader workers copy page after page of them just by touching reference counts
# also: data_loading_bound preprocessing_bound memory_leak memory_pressure too_many_workers startup_bound collate_bound
# cure: --arrays
# gain: none
# needs: torch
"""Two-tower recommender: predicts the next title from what a viewer has watched so far."""
import argparse
import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

VIEWERS, EVENTS, TITLES, WINDOW = 20000, 60, 30000, 50


class WatchHistory(Dataset):
    """histories[v] = [(title, minutes, unix time), ...] in the order of watching"""

    def __init__(self, arrays=False):
        rnd = random.Random(5)
        self.histories = []
        for _ in range(VIEWERS):
            t = 1_600_000_000
            events = []
            for _ in range(EVENTS):
                t += int(rnd.random() * 90_000)
                events.append((300 + int(rnd.random() * (TITLES - 300)), rnd.random() * 120, t))
            self.histories.append(events)
        self.titles = None
        if arrays:
            self.titles = np.array([[e[0] for e in h] for h in self.histories], dtype=np.int64)
            self.minutes = np.array([[e[1] for e in h] for h in self.histories], dtype=np.float32)
            self.times = np.array([[e[2] for e in h] for h in self.histories], dtype=np.int64)
            self.histories = None

    def __len__(self):
        return VIEWERS

    def __getitem__(self, v):
        if self.titles is not None:
            titles, minutes, times = self.titles[v], self.minutes[v], self.times[v]
        else:
            history = self.histories[v]
            titles = np.array([e[0] for e in history], dtype=np.int64)
            minutes = np.array([e[1] for e in history], dtype=np.float32)
            times = np.array([e[2] for e in history], dtype=np.int64)
        gaps = np.diff(times, prepend=times[0]).astype(np.float32) / 86400
        features = np.stack([minutes / 120, gaps], 1).astype(np.float32)
        return titles[:WINDOW], features[:WINDOW], titles[WINDOW]


class Towers(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.seen = nn.Embedding(TITLES, dim, sparse=True)
        self.next = nn.Embedding(TITLES, dim, sparse=True)
        self.mix = nn.GRU(dim + 2, 48, batch_first=True)
        self.out = nn.Linear(48, dim)

    def forward(self, titles, features, candidates):
        h, _ = self.mix(torch.cat([self.seen(titles), features], 2))
        return self.out(h[:, -1]) @ self.next(candidates).t()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--arrays", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    data = WatchHistory(args.arrays)
    loader = DataLoader(data, batch_size=64, num_workers=2, drop_last=True)
    model = Towers()
    sparse = torch.optim.SparseAdam([model.seen.weight, model.next.weight], lr=1e-3)
    dense = torch.optim.Adam([*model.mix.parameters(), *model.out.parameters()], lr=1e-3)
    for n, (titles, features, following) in enumerate(loader):
        scores = model(titles, features, following)  # the other viewers' titles are the negatives
        loss = F.cross_entropy(scores, torch.arange(len(scores)))
        sparse.zero_grad()
        dense.zero_grad()
        loss.backward()
        sparse.step()
        dense.step()
        if n % 100 == 0:
            print(f"{n:4d}/{len(loader)} {loss.item():.3f}")


if __name__ == "__main__":
    main()
