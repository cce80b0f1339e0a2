"""A training loop that does something beside training in every step, and times it.

    journal.py journal FILE    every step writes numbers of the weights, one by one
    journal.py simulate FILE   every step computes for long and tells of it in a short line
    journal.py epochs FILE     … or in one line of fifty steps
    journal.py results FILE    no step does; rows are written before the loop and behind it
    journal.py test FILE       every step runs the model once more and prints a table of it

FILE.truth is the share of its steps that it measured itself.
"""
import csv
import math
import sys
import time

import torch
from torch import nn

STEPS = 400


class Journal:
    def __init__(self, file):
        self.file, self.rows = file, csv.writer(file)

    def row(self, step, weight):
        cells = [f"{value.item():.6e}" for value in weight.detach().flatten()[:300]]
        self.rows.writerow([step, *cells])
        self.file.flush()

    def note(self, step, model):
        for weight in model.parameters():
            self.row(step, weight)


def simulate(file, step, every):
    total = sum(math.sin(i) for i in range(60_000))
    if step % every == 0:
        print(f"{step} {total:.3f}", file=file, flush=True)


def results(file, rows):
    for number in range(rows):
        print(number, sum(math.sqrt(number + i) for i in range(2000)), file=file)


def test(file, model, x):
    model.eval()
    with torch.no_grad():
        for _ in range(10):
            values = model(x)
        for value in values[:40]:
            print(f"{value.item():.6e}", file=file)
    file.flush()
    model.train()


def train(way, file):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    data = torch.randn(256, 64)
    journal = Journal(file)
    beside = whole = 0.0
    for step in range(STEPS):
        begun = time.perf_counter()
        model(data).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        trained = time.perf_counter()
        if way == "journal":
            journal.note(step, model)
        elif way in ("simulate", "epochs"):
            simulate(file, step, 1 if way == "simulate" else 50)
        elif way == "test":
            test(file, model, data)
        print(step, file=file, flush=True)
        beside += time.perf_counter() - trained
        whole += time.perf_counter() - begun
    return beside / whole


def main():
    way, path = sys.argv[1:]
    with open(path, "w") as file:
        if way == "results":
            results(file, 5_000)
        share = train(way, file)
        if way == "results":
            results(file, 5_000)
    with open(path + ".truth", "w") as truth:
        truth.write(f"{share}\n")


if __name__ == "__main__":
    main()
