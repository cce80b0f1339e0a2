# truth: worker_memory_growth
# about: the journeys of all passengers are a dict of lists of tuples that forked workers walk through; reading an object writes its reference count, so page after page of the parent's memory is copied into every worker
# cure: cured/tram_tickets.py
# gain: none
# needs: torch numpy
"""Predicts the next stop of a tram passenger from the ticket machine's log.

An iterable data set: each worker takes its share of the passengers, in a new order every epoch.
"""
import random
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

PASSENGERS, JOURNEYS, STOPS, BATCH, EPOCHS = 52_000, 24, 300, 256, 1


def read_log(seed):
    """passenger -> list of (minute, stop, fare)"""
    rng = np.random.default_rng(seed)
    home = rng.integers(0, STOPS, (PASSENGERS, 1))
    stops = (home + rng.integers(-6, 7, (PASSENGERS, JOURNEYS))) % STOPS + 1000
    minutes = np.sort(rng.integers(1000, 500_000, (PASSENGERS, JOURNEYS)), 1)
    fares = rng.uniform(1.5, 6.0, (PASSENGERS, JOURNEYS))
    log = {}
    for i, (m, s, f) in enumerate(zip(minutes.tolist(), stops.tolist(), fares.tolist())):
        log[f"card-{i:07d}"] = list(zip(m, s, f))
    return log


class Journeys(IterableDataset):
    def __init__(self, log):
        self.log = log
        self.cards = list(log)
        self.epoch = 0

    def __iter__(self):
        info = get_worker_info()
        mine, of = (info.id, info.num_workers) if info else (0, 1)
        order = list(range(len(self.cards)))
        random.Random(self.epoch).shuffle(order)
        self.epoch += 1
        for k in order[mine::of]:
            yield np.array(self.log[self.cards[k]], np.float32)


class NextStop(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.stop = nn.Embedding(STOPS, width)
        self.hour = nn.Embedding(24, width)
        self.fare = nn.Linear(1, width)
        self.mix = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, STOPS)

    def forward(self, journeys):
        minutes, stops, fares = journeys.unbind(2)
        stops, hours = stops.long() - 1000, minutes.long() // 60 % 24
        x = self.stop(stops) + self.hour(hours) + self.fare(fares.unsqueeze(2))
        return self.out(self.mix(x)[0][:, -1])


def main():
    torch.manual_seed(6)
    data = Journeys(read_log(6))
    loader = DataLoader(data, batch_size=BATCH, num_workers=2, persistent_workers=True, drop_last=True)
    model = NextStop()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    began, steps = time.perf_counter(), 0
    for epoch in range(EPOCHS):
        for journeys in loader:
            following = journeys[:, -1, 1].long() - 1000
            loss = nn.functional.cross_entropy(model(journeys[:, :-1]), following)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
        print(f"epoch {epoch + 1} loss {loss.item():.3f}")
    took = time.perf_counter() - began
    print(f"{steps} steps, {1000 * took / steps:.1f} ms a step")


if __name__ == "__main__":
    main()
