# truth: none
# about: a cross-validation whose folds are shared out among as many processes as there are cores, one thread each; all folds are alike and everybody computes to the end
# env: OMP_NUM_THREADS=1
# needs: torch numpy cores:2
"""How well does the draught of a barge tell its load? Cross-validated, folds in parallel."""
import argparse
import multiprocessing
import os
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

MARKS = 32


def measure(path, barges, seed):
    rng = np.random.default_rng(seed)
    draught = rng.normal(size=(barges, MARKS)).astype(np.float32)
    load = np.tanh(draught[:, :8].sum(1)) + 0.5 * draught[:, 8] * draught[:, 9] + rng.normal(0, 0.05, barges)
    np.savez(path, draught=draught, load=load.astype(np.float32))


def tables(path, fold, folds):
    with np.load(path) as stored:
        draught, load = torch.from_numpy(stored["draught"]), torch.from_numpy(stored["load"])
    held = torch.arange(len(load)) % folds == fold
    return TensorDataset(draught[~held], load[~held]), (draught[held], load[held])


def build(width):
    return nn.Sequential(nn.Linear(MARKS, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                         nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1), nn.Flatten(0))


def run_fold(task):
    path, fold, args = task
    torch.set_num_threads(1)
    torch.manual_seed(100 + fold)
    train, (draught, load) = tables(path, fold, args.folds)
    batches = BatchSampler(RandomSampler(train), args.batch, drop_last=True)
    loader = DataLoader(train, sampler=batches, batch_size=None)  # a whole batch is one index into the tables
    model = build(args.width)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for _ in range(args.epochs):
        for inputs, targets in loader:
            optimizer.zero_grad(set_to_none=True)
            nn.functional.mse_loss(model(inputs), targets).backward()
            optimizer.step()
    with torch.no_grad():
        return fold, nn.functional.mse_loss(model(draught), load).sqrt().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--barges", type=int, default=16384)
    parser.add_argument("--folds", type=int, default=8)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=4)
    args = parser.parse_args()

    with tempfile.TemporaryDirectory(prefix="barges") as folder:
        path = os.path.join(folder, "survey.npz")
        measure(path, args.barges, seed=47)
        errors = []
        with multiprocessing.Pool(args.processes) as pool:
            tasks = [(path, fold, args) for fold in range(args.folds)]
            for fold, error in pool.imap_unordered(run_fold, tasks):
                print(f"fold {fold}: {error:.4f}")
                errors.append(error)
            pool.close()
            pool.join()
    print(f"error {np.mean(errors):.4f} +- {np.std(errors):.4f}")


if __name__ == "__main__":
    main()
