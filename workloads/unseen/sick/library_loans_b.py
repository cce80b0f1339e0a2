# truth: checkpoint_stall
# about: the whole model, all embeddings of books and readers, is written to disk after every second step
# also: io_wait
# cure: --save-every 20
# whatif: checkpoint=10
# needs: torch numpy
"""Two towers for a library: which book would this reader borrow next (contrastive)."""
import argparse
import os
import shutil
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def lend(path, loans, readers, books, seed):
    rng = np.random.default_rng(seed)
    reader = rng.integers(0, readers, loans)
    book = (reader * 7 + rng.integers(0, 400, loans)) % books
    np.save(path, np.stack([reader, book], 1).astype(np.int64))


class Loans(Dataset):
    def __init__(self, path):
        self.pairs = torch.from_numpy(np.load(path))

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, index):
        return self.pairs[index]


class Tower(nn.Module):
    def __init__(self, count, size, width):
        super().__init__()
        self.table = nn.Embedding(count, size, sparse=True)
        self.net = nn.Sequential(nn.Linear(size, width), nn.ReLU(), nn.Linear(width, width),
                                 nn.ReLU(), nn.Linear(width, size))

    def forward(self, numbers):
        return nn.functional.normalize(self.net(self.table(numbers)), dim=1)


class Towers(nn.Module):
    def __init__(self, readers, books, size, width):
        super().__init__()
        self.reader = Tower(readers, size, width)
        self.book = Tower(books, size, width)

    def forward(self, pairs):
        near = self.reader(pairs[:, 0]) @ self.book(pairs[:, 1]).t()
        return nn.functional.cross_entropy(near / 0.1, torch.arange(len(pairs)))


class Shelf:
    """Keeps the last states of the training, the oldest goes."""

    def __init__(self, folder, keep=2):
        self.folder = folder
        self.keep = keep
        self.kept = []

    def put(self, step, model, optimizer):
        path = os.path.join(self.folder, f"state_{step:05d}.pt")
        torch.save({"step": step, "model": model.state_dict(),
                    "optimizer": optimizer.state_dict()}, path)
        self.kept.append(path)
        while len(self.kept) > self.keep:
            os.remove(self.kept.pop(0))


def train(options, folder):
    path = os.path.join(folder, "loans.npy")
    lend(path, options.batch * options.steps, options.readers, options.books, options.seed)
    loader = DataLoader(Loans(path), batch_size=options.batch, shuffle=True)
    model = Towers(options.readers, options.books, options.size, options.width)
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr)
    shelf = Shelf(folder)
    for step, pairs in enumerate(loader, 1):
        loss = model(pairs)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % options.save_every == 0:
            shelf.put(step, model, optimizer)
        if step % 30 == 0:
            print(f"step {step}: loss {loss.item():.4f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--readers", type=int, default=100000)
    parser.add_argument("--books", type=int, default=120000)
    parser.add_argument("--size", type=int, default=48)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--steps", type=int, default=226)
    parser.add_argument("--save-every", type=int, default=2)
    parser.add_argument("--lr", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=451)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    folder = tempfile.mkdtemp(prefix="library_")
    try:
        train(options, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
