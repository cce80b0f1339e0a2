# truth: logging_stall
# about: every step writes a line for each of its pairs through the logging module, which formats, flushes and calls write() line by line; one batch in fifty would tell as much
# cure: --log-every 50
# whatif: logging=50
# needs: torch numpy
"""Pairwise ranking of shop items with two towers; scores go to a log file for the analysts."""
import argparse
import logging
import os
import shutil
import tempfile
import time

import numpy as np
import torch
from torch import nn

USERS, ITEMS = 3000, 5000


class Tower(nn.Module):
    def __init__(self, count, width=48):
        super().__init__()
        self.table = nn.Embedding(count, width)
        self.net = nn.Sequential(nn.Linear(width, 160), nn.GELU(), nn.Linear(160, 64))

    def forward(self, ids):
        return nn.functional.normalize(self.net(self.table(ids)), dim=-1)


def purchases(count):
    rng = np.random.default_rng(13)
    taste = rng.integers(0, 20, USERS)
    user = rng.integers(0, USERS, count)
    bought = (taste[user] * 250 + rng.integers(0, 250, count)) % ITEMS
    other = rng.integers(0, ITEMS, count)
    return [torch.from_numpy(c) for c in (user, bought, other)]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--log-every", type=int, default=1)
    ap.add_argument("--steps", type=int, default=STEPS)
    args = ap.parse_args()
    torch.manual_seed(12)
    folder = tempfile.mkdtemp(prefix="rank")
    try:
        handler = logging.FileHandler(os.path.join(folder, "pairs.log"))
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s:%(lineno)d %(message)s"))
        log = logging.getLogger("ranking")
        log.addHandler(handler)
        log.setLevel(logging.INFO)
        log.propagate = False

        user, bought, other = purchases(args.steps * BATCH)
        users, items = Tower(USERS), Tower(ITEMS)
        opt = torch.optim.SGD([*users.parameters(), *items.parameters()], lr=0.5)
        begin = time.perf_counter()
        for step in range(args.steps):
            rows = slice(step * BATCH, (step + 1) * BATCH)
            u, b, o = user[rows], bought[rows], other[rows]
            who = users(u)
            good, bad = (who * items(b)).sum(1) * 8, (who * items(o)).sum(1) * 8
            loss = nn.functional.softplus(bad - good).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            if step % args.log_every == 0:
                pairs = zip(u.tolist(), b.tolist(), o.tolist(), good.tolist(), bad.tolist())
                for person, one, two, first, second in pairs:
                    log.info("step %d user %d bought %d (%.4f) rather than %d (%.4f)",
                             step, person, one, first, two, second)
                log.info("step %d loss %.5f", step, loss.item())
        spent = time.perf_counter() - begin
        handler.close()
        print(f"last loss {loss.item():.4f}")
        print(f"{args.steps} steps, {spent:.2f} s, {1000 * spent / args.steps:.2f} ms a step")
    finally:
        shutil.rmtree(folder)


BATCH = 512
STEPS = 520
if __name__ == "__main__":
    main()
