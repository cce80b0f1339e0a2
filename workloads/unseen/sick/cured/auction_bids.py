# The same with the monitor in a process of its own.
"""Learns which bids win an ad auction; a monitor follows the quality of the recent predictions while it learns."""
import multiprocessing
import time
from collections import deque

import torch
from torch import nn

STEPS = 160
BATCH = 512
FIELDS = (400, 200, 60, 24, 12)


class Monitor:
    """Keeps the last predictions and reports how well they rank and how well they are calibrated, in a process of its own."""

    def __init__(self, keep=6000):
        ways = multiprocessing.get_context("fork")
        self.told, self.ears = ways.Pipe()
        self.process = ways.Process(target=self.run, args=(keep,), daemon=True)
        self.reports = []

    def start(self):
        self.process.start()

    def add(self, chances, wins):
        self.told.send((chances, wins))

    def stop(self):
        self.told.send(None)
        self.reports = self.told.recv()
        self.process.join()

    def run(self, keep):
        recent = deque(maxlen=keep)
        reports = []
        while True:
            while len(recent) < 100 or self.ears.poll():
                news = self.ears.recv()
                if news is None:
                    self.ears.send(reports)
                    return
                recent.extend(zip(*news))
            seen = list(recent)
            reports.append((ranking(seen), calibration(seen)))


def ranking(seen):
    """Area under the curve: how many losing bids stand below each winning one."""
    below, total, wins = 0, 0, 0
    for _, won in sorted(seen):
        if won:
            total += below
            wins += 1
        else:
            below += 1
    return total / max(1, wins * below)


def calibration(seen, bins=20):
    said, won, count = [0.0] * bins, [0.0] * bins, [0] * bins
    for chance, win in seen:
        place = min(bins - 1, int(chance * bins))
        said[place] += chance
        won[place] += win
        count[place] += 1
    return sum(abs(s - w) for s, w in zip(said, won)) / sum(count)


class BidModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.fields = nn.ModuleList(nn.Embedding(size, 16) for size in FIELDS)
        self.deep = nn.Sequential(nn.Linear(16 * len(FIELDS) + 8, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 1))
        self.wide = nn.Linear(8, 1)

    def forward(self, ids, numbers):
        parts = [field(ids[:, place]) for place, field in enumerate(self.fields)]
        return (self.deep(torch.cat(parts + [numbers], dim=1)) + self.wide(numbers)).squeeze(1)


def auctions(count):
    ids = torch.stack([torch.randint(size, (count,)) for size in FIELDS], dim=1)
    numbers = torch.randn(count, 8)
    taste = [torch.randn(size) for size in FIELDS]
    score = sum(t[ids[:, place]] for place, t in enumerate(taste)) + numbers[:, 0] - 1.0
    return ids, numbers, (torch.rand(count) < torch.sigmoid(score)).float()


def main():
    torch.manual_seed(23)
    torch.set_num_threads(1)
    ids, numbers, wins = auctions(40000)
    model = BidModel()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.02)
    monitor = Monitor()
    monitor.start()
    began = time.perf_counter()
    for step in range(STEPS):
        rows = torch.randint(len(wins), (BATCH,))
        logits = model(ids[rows], numbers[rows])
        loss = nn.functional.binary_cross_entropy_with_logits(logits, wins[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 4 == 0:
            monitor.add(torch.sigmoid(logits.detach()).tolist(), wins[rows].tolist())
    took = time.perf_counter() - began
    monitor.stop()
    if monitor.reports:
        print("last report: auc {:.3f}, calibration error {:.3f}".format(*monitor.reports[-1]))
    print(f"loss {loss.item():.4f}; {STEPS} steps, {1000 * took / STEPS:.2f} ms each, {took:.2f} s")


if __name__ == "__main__":
    main()
