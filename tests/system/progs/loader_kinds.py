"""Trains and evaluates with loaders of all kinds in a session of its own.

Usage: loader_kinds.py RUN. Prints "KeyError" for each loader whose data set fails, "done".
"""

import sys

import sonde
import torch
from sonde.integrations.torch import watch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, x):
        for t in self.transforms:
            x = t(x)
        return x


class Named(Dataset):
    def __init__(self, n):
        self.n = n
        self.transform = Compose([torch.Tensor.neg, torch.Tensor.abs])

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return {"x": self.transform(torch.ones(4) * i), "y": i, "name": f"s{i}"}


class Stream(IterableDataset):
    def __iter__(self):
        return iter(torch.ones(40, 4))


class Broken(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        if i == 5:
            raise KeyError(i)
        return torch.ones(4)


torch.manual_seed(0)
torch.set_num_threads(1)
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


def train(loader, limit=None):
    for i, batch in enumerate(loader):
        if i == limit:
            break
        optimizer.zero_grad()
        net(batch["x"] if isinstance(batch, dict) else batch).sum().backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()


def evaluate(loader):
    net.eval()
    for batch in loader:
        with torch.no_grad():
            net(batch["x"])
    net.train()


def odd_collate(samples):
    return [object(), ["a", "b"], samples, ()]


def everything():
    for workers, persistent in ((0, False), (2, False), (2, True)):
        loader = DataLoader(
            Named(60), 6, num_workers=workers, persistent_workers=persistent, shuffle=True
        )
        for _ in range(2):
            train(loader)
            evaluate(loader)
        train(loader, 3)
        train(DataLoader(Stream(), 4, num_workers=workers))
        evaluate(DataLoader(Named(4), 4, num_workers=workers))
    for workers in (0, 1):
        try:
            train(DataLoader(Broken(), 2, num_workers=workers))
        except KeyError:
            print("KeyError", flush=True)
    for _ in DataLoader(Named(4), 2, collate_fn=odd_collate):
        pass
    for _ in DataLoader(list("abcdef"), 2):
        pass
    for a, _ in zip(DataLoader(Named(12), 2), DataLoader(Named(12), 2)):
        net(a["x"])


if __name__ == "__main__":
    with sonde.session(output=sys.argv[1], profile_level="basic", generate_reports=False):
        watch()
        everything()
        sonde.step(samples=3)
        train(DataLoader(Named(12), 2))
    print("done")
