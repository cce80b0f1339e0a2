# truth: epoch_boundary_stall
# about: the epochs are short and the loader's workers are started anew for each of them; every new worker parses the glyph archive's index again before its first sample
# also: data_loading_bound
# cure: --keep-workers
# gain: run
# needs: torch numpy
"""Names of printed musical symbols: glyphs of an archive are put on staff lines and shifted, a small network reads them."""
import argparse
import json
import os
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIZE, KINDS = 28, 16


def engrave(folder, count, seed=23):
    """The archive: one file of 8-bit glyphs and one JSON index with what the foundry knew about each of them."""
    rng = np.random.default_rng(seed)
    shapes = (rng.random((KINDS, 7, 7)) < 0.45).repeat(4, 1).repeat(4, 2)
    kinds = rng.integers(0, KINDS, count)
    ink = (shapes[kinds] * rng.integers(150, 255, (count, 1, 1))).astype(np.uint8)
    ink.tofile(os.path.join(folder, "glyphs.bin"))
    places = rng.integers(0, 1000, (count, 12)).tolist()
    index = [{"offset": i * SIZE * SIZE, "kind": int(kinds[i]), "plate": "pl. %d" % (i // 40), "outline": places[i],
              "foundry": {"name": "B&H %d" % (i % 90), "year": 1780 + i % 120}} for i in range(count)]
    with open(os.path.join(folder, "index.json"), "w") as f:
        json.dump(index, f)


class Symbols(Dataset):
    def __init__(self, folder, count):
        self.folder, self.count = folder, count
        self.index = self.glyphs = None

    def archive(self):
        """Opened where it is used: an open archive does not travel to the workers."""
        with open(os.path.join(self.folder, "index.json")) as f:
            self.index = json.load(f)
        self.index.sort(key=lambda g: (g["foundry"]["year"], g["offset"]))
        self.glyphs = np.memmap(os.path.join(self.folder, "glyphs.bin"), np.uint8, "r")

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        if self.index is None:
            self.archive()
        entry = self.index[i]
        at = entry["offset"]
        glyph = self.glyphs[at:at + SIZE * SIZE].reshape(SIZE, SIZE).astype(np.float32)
        page = np.random.normal(20, 8, (40, 40)).astype(np.float32)
        page[4::8] += 160
        y, x = np.random.randint(0, 12, 2)
        part = page[y:y + SIZE, x:x + SIZE]
        np.maximum(part, glyph, out=part)
        return torch.from_numpy(page[None] / 255), entry["kind"]


def network():
    return nn.Sequential(nn.Conv2d(1, 12, 5, stride=2), nn.ReLU(), nn.Conv2d(12, 24, 3, stride=2), nn.ReLU(),
                         nn.Flatten(), nn.Linear(24 * 8 * 8, 96), nn.ReLU(), nn.Linear(96, KINDS))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--keep-workers", action="store_true")
    ap.add_argument("--epochs", type=int, default=30)
    args = ap.parse_args()
    torch.manual_seed(23)
    count, drawn = 24000, 384
    with tempfile.TemporaryDirectory(prefix="music") as folder:
        engrave(folder, count)
        # an epoch is a fresh draw of a few pages
        sampler = torch.utils.data.RandomSampler(range(count), replacement=True, num_samples=drawn)
        loader = DataLoader(Symbols(folder, count), batch_size=64, sampler=sampler, num_workers=2,
                            persistent_workers=args.keep_workers)
        net = network()
        opt = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, args.epochs)
        steps, began = 0, time.perf_counter()
        for epoch in range(args.epochs):
            right = 0
            for page, kind in loader:
                out = net(page)
                loss = nn.functional.cross_entropy(out, kind)
                opt.zero_grad(set_to_none=True)
                loss.backward()
                opt.step()
                right += int((out.argmax(1) == kind).sum())
                steps += 1
            schedule.step()
            print("epoch %2d: %5.1f %%" % (epoch, 100 * right / drawn))
        took = time.perf_counter() - began
        print("%d steps, %.1f s, %.2f ms each" % (steps, took, 1e3 * took / steps))


if __name__ == "__main__":
    main()
