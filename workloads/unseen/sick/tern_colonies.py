# truth: epoch_boundary_stall
# about: the colonies make short epochs, and at each of them the loader starts its workers anew, which have to read the ring register again before they can deliver a first batch
# also: data_loading_bound
# gain: run
# cure: --keep
# needs: torch numpy
"""Will a ringed tern come back next year? A small transformer over the sightings of each bird."""
import argparse
import json
import os
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIGHTINGS = 24


def write_register(path, birds, seed):
    rng = np.random.default_rng(seed)
    with open(path, "w") as f:
        for b in range(birds):
            seen = rng.normal(size=(SIGHTINGS, 6)).round(3)
            f.write(json.dumps({"ring": f"T{b:06d}", "seen": seen.tolist(), "back": int(seen[-4:, 0].sum() > 0)}) + "\n")


class RingRegister(Dataset):
    """Opened on first use, so that every worker has its own."""

    def __init__(self, path, rings):
        self.path, self.rings, self.birds = path, rings, None

    def open(self):
        self.birds = {}
        with open(self.path) as f:
            for line in f:
                bird = json.loads(line)
                self.birds[bird["ring"]] = (np.array(bird["seen"], dtype=np.float32), bird["back"])

    def __len__(self):
        return len(self.rings)

    def __getitem__(self, i):
        if self.birds is None:
            self.open()
        seen, back = self.birds[self.rings[i]]
        return torch.from_numpy(seen), torch.tensor(float(back))


class ReturnModel(nn.Module):
    def __init__(self, d=48):
        super().__init__()
        self.lift = nn.Linear(6, d)
        self.pos = nn.Parameter(torch.zeros(SIGHTINGS, d))
        layer = nn.TransformerEncoderLayer(d, 4, 2 * d, dropout=0.0, batch_first=True)
        self.enc = nn.TransformerEncoder(layer, 2)
        self.out = nn.Linear(d, 1)

    def forward(self, x):
        return self.out(self.enc(self.lift(x) + self.pos).mean(1)).squeeze(1)


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=24)
    p.add_argument("--colony", type=int, default=512, help="birds of the colony that is trained on")
    p.add_argument("--register", type=int, default=5000, help="birds in the register")
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--keep", action="store_true", help="keep the workers from one epoch to the next")
    return p.parse_args()


def main():
    args = parse()
    torch.manual_seed(12)
    torch.set_num_threads(1)
    handle, path = tempfile.mkstemp(suffix=".jsonl")
    os.close(handle)
    try:
        write_register(path, args.register, 12)
        colony = [f"T{b:06d}" for b in range(0, args.register, args.register // args.colony)][:args.colony]
        loader = DataLoader(RingRegister(path, colony), batch_size=64, shuffle=True, num_workers=args.workers,
                            persistent_workers=args.keep)
        model = ReturnModel()
        opt = torch.optim.Adam(model.parameters(), lr=1e-3)
        for epoch in range(args.epochs):
            losses = []
            for seen, back in loader:
                loss = nn.functional.binary_cross_entropy_with_logits(model(seen), back)
                opt.zero_grad()
                loss.backward()
                opt.step()
                losses.append(loss.item())
            print(f"epoch {epoch:2d}  loss {np.mean(losses):.4f}")
    finally:
        os.unlink(path)


if __name__ == "__main__":
    main()
