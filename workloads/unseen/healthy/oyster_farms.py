# truth: none
# about: two folds of a cross-validation are trained at the same time in two processes with one thread each, on two cores; the parent only waits for their scores
# env: OMP_NUM_THREADS=1
# needs: torch numpy
"""Growth of oysters on the racks of a farm, by two-fold cross-validation, one process a fold."""
import multiprocessing as mp

import numpy as np
import torch
from torch import nn

FACTS = 36


def racks(count=24_000, seed=101):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, FACTS)).astype(np.float32)
    growth = np.sin(x[:, 0]) + 0.5 * x[:, 1] * (x[:, 2] > 0) + 0.2 * x[:, 3] ** 2 + 0.1 * rng.normal(size=count)
    return x, growth.astype(np.float32)


def r_squared(model, x, y):
    with torch.no_grad():
        guess = torch.cat([model(part).squeeze(1) for part in x.split(4096)])
    return 1 - ((guess - y).square().mean() / y.var()).item()


def run_fold(fold, scores):
    torch.manual_seed(200 + fold)
    x, y = (torch.from_numpy(a) for a in racks())
    mine = torch.arange(len(x)) % 2 == fold
    held_x, held_y, x, y = x[mine], y[mine], x[~mine], y[~mine]
    model = nn.Sequential(nn.Linear(FACTS, 384), nn.GELU(), nn.Linear(384, 384), nn.GELU(), nn.Linear(384, 384),
                          nn.GELU(), nn.Linear(384, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(14):
        for rows in torch.randperm(len(x)).split(512):
            loss = nn.functional.mse_loss(model(x[rows]).squeeze(1), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    scores.put((fold, r_squared(model, held_x, held_y)))


def main():
    context = mp.get_context("spawn")
    scores = context.Queue()
    folds = [context.Process(target=run_fold, args=(fold, scores)) for fold in range(2)]
    for process in folds:
        process.start()
    for fold, score in sorted(scores.get() for _ in folds):
        print(f"fold {fold}: R2 {score:.3f}")
    for process in folds:
        process.join()
    if any(process.exitcode for process in folds):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
