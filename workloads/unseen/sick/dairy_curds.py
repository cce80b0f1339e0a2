# truth: checkpoint_stall
# about: after every sixth step the model and the optimizer's state are packed with gzip and written to the disk, and training stands still until they are there
# cure: --save-every 60
# whatif: checkpoint=10
# gain: run
# env: OMP_NUM_THREADS=1
# needs: torch numpy
"""When to cut the curd: firmness curves of the vat forecast from the first minutes."""
import argparse
import gzip
import pathlib
import tempfile

import numpy as np
import torch
from torch import nn

LEAD, AHEAD = 128, 64


def vats(count, rng):
    minutes = np.arange(LEAD + AHEAD)
    onset = rng.uniform(30, 110, (count, 1))
    pace = rng.uniform(0.05, 0.2, (count, 1))
    firm = rng.uniform(0.7, 1.3, (count, 1)) / (1 + np.exp(-pace * (minutes - onset)))
    return (firm + rng.normal(0, 0.01, firm.shape)).astype(np.float32)


class Keeper:
    """Writes checkpoints beside each other and keeps the last two."""

    def __init__(self, folder, every):
        self.folder, self.every, self.kept = pathlib.Path(folder), every, []

    def after(self, step, model, optimizer):
        if step % self.every:
            return
        path = self.folder / f"step{step:05d}.pt.gz"
        with gzip.open(path, "wb", compresslevel=1) as f:
            torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, f)
        self.kept.append(path)
        if len(self.kept) > 2:
            self.kept.pop(0).unlink()


def build(width=512):
    return nn.Sequential(nn.Linear(LEAD, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                         nn.Linear(width, width), nn.ReLU(), nn.Linear(width, AHEAD))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--save-every", type=int, default=6)
    parser.add_argument("--steps", type=int, default=240)
    args = parser.parse_args()
    torch.manual_seed(61)
    curves = torch.from_numpy(vats(4096, np.random.default_rng(61)))
    model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9, nesterov=True)
    with tempfile.TemporaryDirectory() as folder:
        keeper = Keeper(folder, args.save_every)
        for step in range(1, args.steps + 1):
            rows = curves[torch.randint(len(curves), (192,))]
            loss = (model(rows[:, :LEAD]) - rows[:, LEAD:]).abs().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            keeper.after(step, model, optimizer)
            if step % 60 == 0:
                print(f"step {step}: mean error {loss.item():.4f}")


if __name__ == "__main__":
    main()
