# truth: gc_pauses
# about: tours are kept as lists of lists of stops, hundreds of thousands are alive and tens of thousands are made in each step, so the cyclic collector starts by itself all the time and walks through all of them though there are no cycles
# cure: --collect round
# needs: torch numpy
"""Learns how long a tour of parcel deliveries will take.

Each step simulates tours through the streets of a town, keeps them in a store of recent tours
and trains on a draw from that store. Stops are [place, minutes, parcels], as the dispatcher's
software wants them.
"""
import argparse
import collections
import gc
import random

import numpy as np
import torch
from torch import nn


class Town:
    """A grid of places; driving between neighbours takes some minutes."""

    def __init__(self, side, seed):
        self.rng = np.random.default_rng(seed)
        self.side = side
        self.minutes = self.rng.uniform(0.5, 4.0, size=(side * side, 4)).astype(np.float32)
        self.moves = np.array([1, -1, side, -side])

    def tours(self, count, stops):
        """Random tours: lists of stops."""
        places = self.rng.integers(self.side * self.side, size=count)
        table = np.empty((count, stops, 3))
        for stop in range(stops):
            way = self.rng.integers(4, size=count)
            table[:, stop, 0] = places
            table[:, stop, 1] = self.minutes[places, way]
            places = (places + self.moves[way]) % (self.side * self.side)
        table[:, :, 2] = self.rng.integers(0, 4, size=(count, stops))
        return table.tolist()


class RecentTours:
    """The tours of the last steps, to draw from."""

    def __init__(self, steps, seed):
        self.parts = collections.deque(maxlen=steps)
        self.random = random.Random(seed)

    def add(self, tours):
        self.parts.append(tours)

    def draw(self, count):
        return [self.random.choice(self.random.choice(self.parts)) for _ in range(count)]


def as_batch(tours):
    table = torch.from_numpy(np.array(tours, dtype=np.float32))
    minutes, parcels = table[:, :, 1], table[:, :, 2]
    inputs = torch.stack([table[:, :, 0] / 2500.0 - 0.5, parcels, parcels.cumsum(1) / 50.0], dim=1)
    return inputs, (minutes + 1.5 * parcels).sum(1) / 100.0


class Clock(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.body = nn.Sequential(nn.Conv1d(3, width, 5, padding=2), nn.ReLU(),
                                  nn.Conv1d(width, width, 5, padding=2), nn.ReLU())
        self.head = nn.Linear(width, 1)

    def forward(self, inputs):
        return self.head(self.body(inputs).mean(2)).squeeze(1)


def train_round(town, store, model, optimizer, args):
    total = 0.0
    for _ in range(args.steps):
        store.add(town.tours(args.tours, args.stops))
        inputs, hours = as_batch(store.draw(args.batch))
        loss = nn.functional.mse_loss(model(inputs), hours)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / args.steps


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=50)
    parser.add_argument("--tours", type=int, default=400, help="new tours in each step")
    parser.add_argument("--stops", type=int, default=80)
    parser.add_argument("--recent", type=int, default=16, help="steps whose tours are kept")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--steps", type=int, default=60, help="steps of a round")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--collect", choices=("auto", "round"), default="auto",
                        help="let Python's collector run by itself, or once after each round")
    args = parser.parse_args()

    torch.manual_seed(23)
    town = Town(args.side, seed=23)
    store = RecentTours(args.recent, seed=23)
    model = Clock()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    if args.collect == "round":
        gc.disable()
    for number in range(args.rounds):
        loss = train_round(town, store, model, optimizer, args)
        if args.collect == "round":
            gc.collect()
        print(f"round {number}: loss {loss:.4f}")


if __name__ == "__main__":
    main()
