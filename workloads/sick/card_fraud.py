# truth: gil_contention
# about: a thread keeps the merchants' risk figures fresh in plain Python while the main thread trains an LSTM on card histories; after every operation the main thread waits for the interpreter lock that the thread holds
# also: sync_stall
# cure: --refresh process
# needs: torch numpy
"""Trains a fraud model on card histories; the merchants' risk table is recomputed beside it all the time."""
import argparse
import multiprocessing
import queue
import random
import threading
import time

import numpy as np
import torch
from torch import nn

MERCHANTS, HISTORY, FEATURES = 600, 12, 10


def bookings(count, seed):
    dice = random.Random(seed)
    return [(dice.randrange(MERCHANTS), dice.expovariate(1 / 40.0), dice.random() < 0.03) for _ in range(count)]


def risk_table(rows):
    """Decayed amounts and fraud rates by merchant, with the spread of the amounts."""
    amount, square, fraud, seen = {}, {}, {}, {}
    for merchant, value, bad in rows:
        seen[merchant] = seen.get(merchant, 0) * 0.999 + 1
        amount[merchant] = amount.get(merchant, 0.0) * 0.999 + value
        square[merchant] = square.get(merchant, 0.0) * 0.999 + value * value
        fraud[merchant] = fraud.get(merchant, 0.0) * 0.999 + (1.0 if bad else 0.0)
    table = []
    for merchant in range(MERCHANTS):
        n = seen.get(merchant, 0) or 1
        mean = amount.get(merchant, 0.0) / n
        table.append((mean, max(0.0, square.get(merchant, 0.0) / n - mean * mean) ** 0.5,
                      (fraud.get(merchant, 0.0) + 0.03) / (n + 1)))
    return table


def keep_fresh(rows, out, stop):
    cut = 0
    while not stop.is_set():
        cut = (cut + 500) % len(rows)
        table = risk_table(rows[cut:] + rows[:cut])
        try:
            out.put_nowait(table)
        except queue.Full:
            pass


class Fraud(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.read = nn.LSTM(FEATURES + 3, width, batch_first=True)
        self.out = nn.Sequential(nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x):
        states, _ = self.read(x)
        return self.out(states[:, -1]).squeeze(1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--refresh", choices=["thread", "process"], default="thread")
    ap.add_argument("--steps", type=int, default=160)
    a = ap.parse_args()
    torch.manual_seed(4)
    torch.set_num_threads(1)  # the other core is for the risk table
    rows = bookings(60_000, 8)
    if a.refresh == "thread":
        out, stop = queue.Queue(1), threading.Event()
        helper = threading.Thread(target=keep_fresh, args=(rows, out, stop), daemon=True)
    else:
        context = multiprocessing.get_context("fork")
        out, stop = context.Queue(1), context.Event()
        helper = context.Process(target=keep_fresh, args=(rows, out, stop), daemon=True)
    helper.start()

    rng = np.random.default_rng(5)
    cards = torch.from_numpy(rng.standard_normal((20_000, HISTORY, FEATURES), dtype=np.float32))
    shops = torch.from_numpy(rng.integers(0, MERCHANTS, (20_000, HISTORY)))
    label = (cards[:, -3:, 0].mean(1) + cards[:, :, 1].amax(1) > 2.4).float()
    risk = torch.zeros(MERCHANTS, 3)
    model = Fraud()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    tables, total = 0, 0.0
    begin = time.perf_counter()
    for step in range(1, a.steps + 1):
        try:
            fresh = torch.tensor(out.get_nowait())
            risk = (fresh - fresh.mean(0)) / (fresh.std(0) + 1e-6)
            tables += 1
        except queue.Empty:
            pass
        pick = torch.randint(0, len(cards), (128,))
        x = torch.cat([cards[pick], risk[shops[pick]]], 2)
        loss = nn.functional.binary_cross_entropy_with_logits(model(x), label[pick])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        total = total + loss.detach()
        if step % 40 == 0:
            print(f"step {step}: loss {float(total) / step:.4f}, risk table {tables}")
    took = time.perf_counter() - begin
    stop.set()
    if a.refresh == "process":
        try:
            while True:
                out.get(timeout=0.3)
        except queue.Empty:
            pass
    helper.join(10)
    print(f"{a.steps} steps, {took:.2f} s, {1e3 * took / a.steps:.1f} ms a step")


if __name__ == "__main__":
    main()
