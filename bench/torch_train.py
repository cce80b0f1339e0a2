"""What tools/bench torchloop times: a CPU training loop with a DataLoader and a worker.

    python bench/torch_train.py STAMPS

Trains until it is told to end. STAMPS is a file of doubles (livepair.Stamps): the moment
each step ended goes there, by the program's own clock; the first says when to end.
"""

import mmap
import sys
from time import perf_counter

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        x = torch.arange(3 * 32 * 32, dtype=torch.float32).view(3, 32, 32)
        x = (x + i).sin_()
        return (x - x.mean()) / x.std(), i % 10


def parts():
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 36, 10),
    )  # fmt: skip
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3)


def train_step(model, optimizer, x, y):
    optimizer.zero_grad(set_to_none=True)
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()


def main(path):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with open(path, "r+b") as file:
        stamps = memoryview(mmap.mmap(file.fileno(), 0)).cast("d")
    model, optimizer = parts()
    images = Images((len(stamps) - 1) * 16)
    loader = DataLoader(images, batch_size=16, shuffle=True, num_workers=1)
    total = 0.0
    for i, (x, y) in enumerate(loader, start=1):
        total += train_step(model, optimizer, x, y)
        stamps[i] = perf_counter()
        if stamps[0]:
            break
    print("loss", total / i, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
