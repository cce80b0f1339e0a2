# truth: checkpoint_stall
# about: after every step the weights and the optimizer's moments are saved in the loop and forced to the disk, and the save takes longer than the step
# also: io_wait
# cure: cured/gorge_winds.py
# whatif: checkpoint=20
# needs: torch numpy
"""Masked reconstruction of anemometer profiles in a gorge: a wide autoencoder over 40 masts x 12 heights."""
import os
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset

MASTS, HEIGHTS = 40, 12
SAVE_EVERY = 20
KEEP = 2


class Gusts(IterableDataset):
    """Endless synthetic profiles; each item is already a batch."""

    def __init__(self, batch, count, seed):
        self.batch, self.count, self.seed = batch, count, seed

    def __iter__(self):
        rng = np.random.default_rng(self.seed)
        ridge = rng.normal(size=(6, MASTS * HEIGHTS)).astype(np.float32)
        for _ in range(self.count):
            flow = rng.normal(size=(self.batch, 6)).astype(np.float32) @ ridge
            mask = rng.random(flow.shape, dtype=np.float32) < 0.3
            yield torch.from_numpy(np.where(mask, 0, flow)), torch.from_numpy(flow)


class Shelf:
    """The last few states of the run, so that it can go on after the node is taken away."""

    def __init__(self, folder, keep):
        self.folder, self.keep, self.have = Path(folder), keep, []

    def put(self, step, net, opt):
        target = self.folder / f"state{step:06d}.pt"
        part = target.with_suffix(".part")
        with open(part, "wb") as f:
            torch.save({"step": step, "net": net.state_dict(), "opt": opt.state_dict()}, f)
            f.flush()
            os.fsync(f.fileno())
        part.rename(target)
        self.have.append(target)
        while len(self.have) > self.keep:
            self.have.pop(0).unlink()


def autoencoder(width):
    n = MASTS * HEIGHTS
    return torch.nn.Sequential(
        torch.nn.Linear(n, width), torch.nn.ReLU(),
        torch.nn.Linear(width, width), torch.nn.ReLU(),
        torch.nn.Linear(width, 64), torch.nn.ReLU(),
        torch.nn.Linear(64, width), torch.nn.ReLU(),
        torch.nn.Linear(width, n))


torch.manual_seed(3)
torch.set_num_threads(1)
net = autoencoder(1024)
opt = torch.optim.Adam(net.parameters(), lr=5e-4)
running = None
with tempfile.TemporaryDirectory(prefix="gorge") as folder:
    shelf = Shelf(folder, KEEP)
    for step, (seen, truth) in enumerate(DataLoader(Gusts(batch=24, count=240, seed=3), batch_size=None), 1):
        error = (net(seen) - truth).pow(2).mean()
        opt.zero_grad()
        error.backward()
        opt.step()
        running = error.item() if running is None else 0.95 * running + 0.05 * error.item()
        if step % SAVE_EVERY == 0:
            shelf.put(step, net, opt)
        if step % 40 == 0:
            print(f"{step:4d}  {running:.4f}")
