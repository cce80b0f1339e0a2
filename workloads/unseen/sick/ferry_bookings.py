# truth: gil_contention
# about: a Python thread beside the training counts which crossings are booked together, in pure Python, all through the run; it holds the GIL, and the training thread has to wait for it after nearly every torch call
# cure: cured/ferry_bookings.py
# needs: torch numpy
"""Next-crossing recommender of a ferry line.

Negatives are drawn with regard to which crossings tend to be booked together. The table
of these is refreshed while the training runs, since bookings come in all the time.
"""
import random
import threading
import time

import torch
from torch import nn

CROSSINGS, CUSTOMERS, STEPS, BATCH = 400, 3000, 64, 256


def make_bookings(seed):
    rng = random.Random(seed)
    book = []
    for _ in range(CUSTOMERS):
        home = rng.randrange(CROSSINGS)
        book.append([(home + int(rng.gauss(0, 12))) % CROSSINGS for _ in range(rng.randint(6, 14))])
    return book


def count_pairs(bookings):
    """For every crossing the eight that are most often booked by the same customer."""
    together = [dict() for _ in range(CROSSINGS)]
    for trips in bookings:
        for a in trips:
            row = together[a]
            for b in trips:
                if a != b:
                    row[b] = row.get(b, 0) + 1
    table = []
    for row in together:
        best = sorted(row.items(), key=lambda kv: (-kv[1], kv[0]))[:8]
        best = [b for b, _ in best]
        table.append(best + [0] * (8 - len(best)))
    return table


class Refresher(threading.Thread):
    def __init__(self, bookings):
        super().__init__(daemon=True)
        self.bookings = bookings
        self.rng = random.Random(1)
        self.table = torch.tensor(count_pairs(bookings))
        self.refreshed = 0
        self.enough = threading.Event()

    def run(self):
        while not self.enough.is_set():
            for _ in range(30):                         # what came in meanwhile
                trips = self.rng.choice(self.bookings)
                trips[self.rng.randrange(len(trips))] = self.rng.randrange(CROSSINGS)
            self.table = torch.tensor(count_pairs(self.bookings))
            self.refreshed += 1

    def latest(self):
        return self.table

    def stop(self):
        self.enough.set()
        self.join()


class Recommender(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.crossing = nn.Embedding(CROSSINGS, width)
        self.history = nn.Sequential(nn.Linear(width, 192), nn.ReLU(), nn.Linear(192, 192), nn.ReLU(), nn.Linear(192, width))

    def forward(self, past, candidates):
        user = self.history(self.crossing(past).mean(1))
        return torch.einsum("bw,bcw->bc", user, self.crossing(candidates))


def main():
    torch.manual_seed(11)
    bookings = make_bookings(11)
    past = torch.tensor([t[:5] for t in bookings])
    following = torch.tensor([t[5] for t in bookings])
    refresher = Refresher(bookings)
    refresher.start()
    model = Recommender()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
    right = torch.zeros(BATCH, dtype=torch.long)
    began = time.perf_counter()
    for step in range(STEPS):
        rows = torch.randint(CUSTOMERS, (BATCH,))
        near = refresher.latest()[following[rows]]
        far = torch.randint(CROSSINGS, (BATCH, 24))
        scores = model(past[rows], torch.cat([following[rows, None], near, far], 1))
        loss = nn.functional.cross_entropy(scores, right)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 16 == 15:
            print(f"step {step + 1} loss {loss.item():.3f}")
    took = time.perf_counter() - began
    refresher.stop()
    print(f"{STEPS} steps, {1000 * took / STEPS:.1f} ms a step, {refresher.refreshed} refreshes")


if __name__ == "__main__":
    main()
