"""Demand for flights at the prices of the moment. The prices live in a table that a pricing process keeps up to date."""
import multiprocessing
import os
import time

os.environ["OMP_NUM_THREADS"] = "1"             # one core for each of the two processes

import numpy as np
import torch
from torch import nn

ROUTES, CLASSES, STEPS, BATCH = 500, 12, 400, 256


class FareTable:
    def __init__(self, context):
        self.raw = context.Array("d", ROUTES * CLASSES, lock=False)
        self.lock = context.Lock()
        self.view()[:] = 100.0

    def view(self):
        return np.frombuffer(self.raw).reshape(ROUTES, CLASSES)


def new_prices(prices, seats, rng):
    """Some rounds of a fixed point: fares go with what the other routes and the seats left ask for."""
    influence = rng.random((ROUTES, ROUTES)) / ROUTES
    fares = prices.copy()
    for _ in range(60):
        fares = 0.5 * fares + 0.5 * (influence @ fares) * (1.0 + 0.4 / (1.0 + seats))
    return 40.0 + 160.0 * fares / fares.max()


def bookings(rng, seats):
    """The bookings that have come in since."""
    for _ in range(4):
        np.subtract.at(seats, (rng.integers(0, ROUTES, 6000), rng.integers(0, CLASSES, 6000)), 0.01)
    seats[seats < 0] = 9.0
    return seats


def pricing(table, over, done):
    rng = np.random.default_rng(2)
    seats = rng.integers(1, 10, (ROUTES, CLASSES)).astype(float)
    while not over.is_set():
        seats = bookings(rng, seats)
        with table.lock:
            fares = table.view().copy()
        fares = new_prices(fares, seats, rng)
        with table.lock:
            table.view()[:] = fares
        done.value += 1


class Demand(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.route = nn.Embedding(ROUTES, 32)
        self.layers = nn.ModuleList([nn.Linear(32 + CLASSES + 7, width), nn.Linear(width, width), nn.Linear(width, CLASSES)])

    def forward(self, route, fares, weekday):
        h = torch.cat([self.route(route), fares, nn.functional.one_hot(weekday, 7).float()], 1)
        for layer in self.layers[:-1]:
            h = torch.tanh(layer(h))
        return nn.functional.softplus(self.layers[-1](h))


def train(table):
    model = Demand()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    began = time.perf_counter()
    for step in range(STEPS):
        route = torch.randint(ROUTES, (BATCH,))
        weekday = torch.randint(7, (BATCH,))
        with table.lock:
            fares = table.view()[route.numpy()]
        fares = torch.from_numpy(fares).float() / 100
        sold = torch.poisson(6.0 / fares)
        loss = nn.functional.poisson_nll_loss(model(route, fares, weekday), sold, log_input=False)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 99:
            print(f"step {step + 1}: {loss.item():.4f}")
    return 1000 * (time.perf_counter() - began) / STEPS


def main():
    torch.set_num_threads(1)
    torch.manual_seed(2)
    context = multiprocessing.get_context("fork")
    table, over, done = FareTable(context), context.Event(), context.Value("i", 0)
    pricer = context.Process(target=pricing, args=(table, over, done), daemon=True)
    pricer.start()
    each = train(table)
    over.set()
    pricer.join()
    print(f"{STEPS} steps, {each:.2f} ms a step, prices made {done.value} times")


if __name__ == "__main__":
    main()
