# truth: too_many_workers
# about: ten workers on two cores cut batches out of a table that lies in memory; cutting takes a fraction of a millisecond, handing the twenty four columns of a batch from process to process through shared memory takes most of the step, and the workers fight with training for the cores
# also: data_loading_bound oversubscribed
# advice: num_workers
# cure: --workers 0
# whatif: workers=0
# needs: torch numpy
"""Estimates the rent of flats from a table of listings: numbers as they are, categories embedded."""
import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler

NUMBERS, CATEGORIES, LEVELS = 14, 9, 40


class Listings(Dataset):
    """The columns of the table. One item is the rows of one batch, already together."""

    def __init__(self, rows=160_000):
        rng = np.random.default_rng(77)
        self.columns = {"number_%d" % k: torch.from_numpy(rng.standard_normal(rows, dtype=np.float32))
                        for k in range(NUMBERS)}
        self.columns.update({"category_%d" % k: torch.from_numpy(rng.integers(0, LEVELS, rows))
                             for k in range(CATEGORIES)})
        rent = self.columns["number_0"] + .2 * (self.columns["category_3"] % 7)
        self.columns["rent"] = rent + .1 * torch.from_numpy(rng.standard_normal(rows, dtype=np.float32))
        self.rows = rows

    def __len__(self):
        return self.rows

    def __getitem__(self, chosen):
        chosen = torch.as_tensor(chosen)
        return {name: column[chosen] for name, column in self.columns.items()}


class Rent(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(LEVELS, 4) for _ in range(CATEGORIES))
        self.layers = nn.Sequential(nn.Linear(NUMBERS + 4 * CATEGORIES, 48), nn.ReLU(), nn.Linear(48, 1))

    def forward(self, rows):
        parts = [torch.stack([rows["number_%d" % k] for k in range(NUMBERS)], 1)]
        parts += [table(rows["category_%d" % k]) for k, table in enumerate(self.tables)]
        return self.layers(torch.cat(parts, 1)).squeeze(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=5)
    arguments = parser.parse_args()
    torch.manual_seed(77)
    listings = Listings()
    batches = BatchSampler(RandomSampler(listings), 1000, drop_last=False)
    loader = DataLoader(listings, sampler=batches, batch_size=None, num_workers=arguments.workers,
                        persistent_workers=arguments.workers > 0)
    model = Rent()
    optimizer = torch.optim.SGD(model.parameters(), lr=.02, momentum=.9)
    steps, error, began = 0, 0.0, None
    for epoch in range(arguments.epochs):
        for rows in loader:
            began = began or time.perf_counter()
            loss = nn.functional.smooth_l1_loss(model(rows), rows["rent"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            error += loss.item()
            steps += 1
    took = time.perf_counter() - began
    print("%d steps, mean error %.3f, %.2f ms per step" % (steps, error / steps, took / steps * 1e3))


if __name__ == "__main__":
    main()
