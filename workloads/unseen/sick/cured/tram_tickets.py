"""Predicts the next stop of a tram passenger from the ticket machine's log.

An iterable data set: each worker takes its share of the passengers, in a new order every epoch.
"""
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

PASSENGERS, JOURNEYS, STOPS, BATCH, EPOCHS = 26_000, 24, 300, 256, 2


def read_log(seed):
    """three arrays, a row for each passenger"""
    rng = np.random.default_rng(seed)
    home = rng.integers(0, STOPS, (PASSENGERS, 1))
    stops = (home + rng.integers(-6, 7, (PASSENGERS, JOURNEYS))) % STOPS + 1000
    minutes = np.sort(rng.integers(1000, 500_000, (PASSENGERS, JOURNEYS)), 1)
    fares = rng.uniform(1.5, 6.0, (PASSENGERS, JOURNEYS))
    return minutes, stops, fares


class Journeys(IterableDataset):
    def __init__(self, log):
        self.minutes, self.stops, self.fares = log
        self.epoch = 0

    def __iter__(self):
        info = get_worker_info()
        mine, of = (info.id, info.num_workers) if info else (0, 1)
        order = np.random.default_rng(self.epoch).permutation(len(self.stops))
        self.epoch += 1
        for k in order[mine::of]:
            stops = torch.from_numpy(self.stops[k]) - 1000
            hours = torch.from_numpy(self.minutes[k]) // 60 % 24
            fares = torch.from_numpy(self.fares[k]).float()
            yield stops[:-1], hours[:-1], fares[:-1], stops[-1]


class NextStop(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.stop = nn.Embedding(STOPS, width)
        self.hour = nn.Embedding(24, width)
        self.fare = nn.Linear(1, width)
        self.mix = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, STOPS)

    def forward(self, stops, hours, fares):
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
        for stops, hours, fares, following in loader:
            loss = nn.functional.cross_entropy(model(stops, hours, fares), following)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
        print(f"epoch {epoch + 1} loss {loss.item():.3f}")
    took = time.perf_counter() - began
    print(f"{steps} steps, {1000 * took / steps:.1f} ms a step")


if __name__ == "__main__":
    main()
