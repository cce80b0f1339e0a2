# truth: too_many_workers
# about: the day's order book lies in memory and a batch of it is cut out in no time, but eight workers on two cores do the cutting, so that megabytes of every batch are copied into shared memory and taken from it again, and the workers fight with the training for the cores
# also: data_loading_bound oversubscribed shm_pressure allocation_churn
# cure: --workers 0
# whatif: workers=0
# advice: num_workers
# needs: torch numpy
"""Direction of the mid price from windows of the order book (depth on both sides, 20 levels)."""
import argparse
import os

os.environ["OMP_NUM_THREADS"] = "1"
import numpy as np
import torch
from time import perf_counter
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

LEVELS, WINDOW, PER_BATCH = 40, 128, 384


class BookDay(Dataset):
    """A batch is PER_BATCH windows that lie one behind the other."""

    def __init__(self, seed, batches):
        rng = np.random.default_rng(seed)
        span = PER_BATCH * WINDOW
        base = rng.poisson(30, (span + 4096, LEVELS)).astype(np.float32)
        self.starts = rng.integers(0, 4096, batches)
        self.depth = base / 30 - 1
        self.span = span

    def __len__(self):
        return len(self.starts)

    def __getitem__(self, k):
        s = int(self.starts[k])
        windows = self.depth[s:s + self.span].reshape(PER_BATCH, WINDOW, LEVELS)
        side = windows[:, -8:, :LEVELS // 2].sum((1, 2)) > windows[:, -8:, LEVELS // 2:].sum((1, 2))
        return torch.from_numpy(windows), torch.from_numpy(side.astype(np.int64))


class Shuffled(Sampler):
    def __init__(self, n, seed):
        self.n, self.generator = n, torch.Generator().manual_seed(seed)

    def __len__(self):
        return self.n

    def __iter__(self):
        return iter(torch.randperm(self.n, generator=self.generator).tolist())


class MidPrice(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(LEVELS * WINDOW // 8, 128), nn.GELU(), nn.Linear(128, 2))

    def forward(self, windows):
        coarse = windows.view(len(windows), WINDOW // 8, 8, LEVELS).mean(2)
        return self.net(coarse)


if __name__ == "__main__":
    flags = argparse.ArgumentParser()
    flags.add_argument("--workers", type=int, default=8)
    flags.add_argument("--batches", type=int, default=480)
    flags = flags.parse_args()
    torch.manual_seed(8)
    torch.set_num_threads(1)
    day = BookDay(8, flags.batches)
    loader = DataLoader(day, batch_size=None, sampler=Shuffled(len(day), 8), num_workers=flags.workers)
    model = MidPrice()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    seen, began = 0, perf_counter()
    for windows, up in loader:
        loss = nn.functional.cross_entropy(model(windows), up)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if seen == 15:
            warm = perf_counter()
        seen += 1
    end = perf_counter()
    print(f"loss {loss.item():.4f}, {seen} steps, {1000 * (end - began) / seen:.2f} ms a step,"
          f" {1000 * (end - warm) / (seen - 16):.2f} ms without the first ones")
