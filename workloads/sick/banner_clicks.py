# truth: too_many_workers
# about: the click log lies in memory and a batch is a cheap look-up, but eight workers fetch it on two cores and ship forty columns a batch through shared memory one descriptor at a time; without workers it is several times faster
# also: data_loading_bound oversubscribed sync_stall
# cure: --workers 0
# whatif: workers=0
# needs: torch
"""Predicts clicks on banners from forty columns of a log that is held in memory."""
import argparse
import time

import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler

CATEGORIES, NUMBERS, BUCKETS = 26, 14, 2000


class ClickLog(Dataset):
    """Asked for a list of rows, gives one tensor for each column, as a column store does."""

    def __init__(self, rows, seed=21):
        gen = torch.Generator().manual_seed(seed)
        self.columns = {}
        for k in range(CATEGORIES):
            self.columns[f"cat_{k:02d}"] = (torch.rand(rows, generator=gen) ** 3 * BUCKETS).long()
        for k in range(NUMBERS):
            self.columns[f"num_{k:02d}"] = torch.randn(rows, generator=gen)
        signal = self.columns["num_00"] - self.columns["num_03"] + (self.columns["cat_05"] % 3).float() - 1
        self.columns["clicked"] = (signal + torch.randn(rows, generator=gen) > 0.8).float()
        self.rows = rows

    def __len__(self):
        return self.rows

    def __getitem__(self, rows):
        rows = torch.as_tensor(rows)
        return {name: column[rows] for name, column in self.columns.items()}


class Clicks(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.table = nn.Embedding(CATEGORIES * BUCKETS, width)
        self.register_buffer("shift", torch.arange(CATEGORIES) * BUCKETS)
        self.mlp = nn.Sequential(nn.Linear(CATEGORIES * width + NUMBERS, 128), nn.ReLU(),
                                 nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, batch):
        cats = torch.stack([batch[f"cat_{k:02d}"] for k in range(CATEGORIES)], 1) + self.shift
        nums = torch.stack([batch[f"num_{k:02d}"] for k in range(NUMBERS)], 1)
        return self.mlp(torch.cat([self.table(cats).flatten(1), nums], 1)).squeeze(1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--workers", type=int, default=8)
    ap.add_argument("--steps", type=int, default=380)
    ap.add_argument("--batch", type=int, default=1024)
    a = ap.parse_args()
    torch.manual_seed(1)
    log = ClickLog(200_000)
    rows = RandomSampler(log, replacement=True, num_samples=a.steps * a.batch)
    loader = DataLoader(log, batch_size=None, num_workers=a.workers,
                        sampler=BatchSampler(rows, a.batch, drop_last=True))
    model = Clicks()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.02)
    begin, steps, total = time.perf_counter(), 0, 0.0
    for batch in loader:
        loss = nn.functional.binary_cross_entropy_with_logits(model(batch), batch["clicked"])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        total = total + loss.detach()
        steps += 1
        if steps % 95 == 0:
            print(f"step {steps}: loss {float(total) / steps:.4f}")
    took = time.perf_counter() - begin
    print(f"{steps} steps, {took:.2f} s, {1e3 * took / steps:.1f} ms a step")


if __name__ == "__main__":
    main()
