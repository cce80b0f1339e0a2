"""What tools/bench torchloop times: a CPU training loop with a DataLoader and a worker.

Prints the seconds of its loop alone, so that starting and ending a profiler do not count;
and the CPU time of its process meanwhile, which a busy machine moves less.
"""

import sys
import time

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


def main(batches):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 36, 10),
    )  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = DataLoader(Images(batches * 16), batch_size=16, shuffle=True, num_workers=1)
    batches = iter(loader)
    next(batches)  # the worker has started
    start, cpu, total = time.perf_counter(), time.process_time(), 0.0
    for x, y in batches:
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item()
    cpu = time.process_time() - cpu
    print("loop", time.perf_counter() - start, cpu, total, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
