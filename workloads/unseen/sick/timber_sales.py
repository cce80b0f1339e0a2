# truth: too_many_workers
# about: sixteen loader workers on two cores do nothing but index columns that lie in memory; each batch of sixteen tensors then goes through shared memory and sockets, which costs many times the indexing, and the workers fight the model for the cores; without workers the loop is faster
# cure: --workers 0
# whatif: workers=0
# env: OMP_NUM_THREADS=1
# needs: torch numpy
"""Hammer prices at timber auctions: lots described by coded and measured columns."""
import argparse

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler

CODED = {"species": 40, "district": 300, "mill": 900, "grade": 12, "season": 4, "seller": 2000, "road": 25}
MEASURED = ["volume", "length", "girth", "moisture", "knots", "slope", "distance", "bidders"]


def auctions(lots, seed=41):
    rng = np.random.default_rng(seed)
    table = {name: rng.integers(0, size, lots) for name, size in CODED.items()}
    table.update({name: rng.normal(size=lots).astype(np.float32) for name in MEASURED})
    worth = rng.normal(size=40)[table["species"]] + 0.4 * rng.normal(size=300)[table["district"]]
    table["price"] = (worth + 0.7 * table["volume"] - 0.3 * table["knots"] * table["moisture"]).astype(np.float32)
    return table


class Lots(Dataset):
    """Takes a list of lots at once: indexing a column is one call however many they are."""

    def __init__(self, table):
        self.table = {name: torch.as_tensor(column) for name, column in table.items()}

    def __len__(self):
        return len(self.table["price"])

    def __getitem__(self, lots):
        return {name: column[lots] for name, column in self.table.items()}


class Appraiser(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.codes = nn.ModuleDict({name: nn.Embedding(size, width) for name, size in CODED.items()})
        self.body = nn.Sequential(nn.Linear(width * len(CODED) + len(MEASURED), 512), nn.GELU(),
                                  nn.Linear(512, 384), nn.GELU(), nn.Linear(384, 1))

    def forward(self, lot):
        parts = [table(lot[name]) for name, table in self.codes.items()]
        parts.append(torch.stack([lot[name] for name in MEASURED], 1))
        return self.body(torch.cat(parts, 1)).squeeze(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lots", type=int, default=64_000)
    args = parser.parse_args()
    torch.manual_seed(5)
    lots = Lots(auctions(args.lots))
    batches = BatchSampler(RandomSampler(lots), args.batch, drop_last=True)
    loader = DataLoader(lots, sampler=batches, batch_size=None, num_workers=args.workers,
                        persistent_workers=args.workers > 0)
    model = Appraiser()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.02)
    for epoch in range(args.epochs):
        running = torch.zeros(())
        for lot in loader:
            loss = nn.functional.mse_loss(model(lot), lot["price"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.detach()
        print(f"epoch {epoch + 1}, mse {running.item() / len(loader):.4f}")


if __name__ == "__main__":
    main()
