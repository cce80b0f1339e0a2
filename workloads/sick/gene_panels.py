# truth: epoch_boundary_stall
# about: epochs are of eight batches, and the loader starts its workers anew for each; every new worker reads the gene annotation from a compressed file again before it can give its first batch
# cure: --keep-workers
# advice: persistent_workers
# gain: run
# needs: torch numpy
"""Response to a drug from the expression of gene panels; a small cohort, many epochs."""
import argparse
import gzip
import json
import os
import shutil
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info

GENES = 3000


def prepare(folder, patients):
    rng = np.random.default_rng(17)
    notes = {}
    for g in range(ANNOTATED):
        notes[f"ENSG{g:08d}"] = {"chrom": int(rng.integers(1, 24)), "start": int(rng.integers(1 << 28)),
                                 "length": int(rng.integers(200, 90000)), "panel": g % 5, "column": g % GENES}
    with gzip.open(os.path.join(folder, "annotation.json.gz"), "wt", compresslevel=1) as out:
        json.dump(notes, out)
    counts = rng.gamma(0.6, 40.0, (patients, GENES)).astype(np.float32)
    weights = rng.normal(size=GENES) * (rng.random(GENES) < 0.02)
    response = (np.log1p(counts) @ weights > 0).astype(np.float32)
    np.save(os.path.join(folder, "counts.npy"), counts)
    np.save(os.path.join(folder, "response.npy"), response)


class Cohort(Dataset):
    def __init__(self, folder):
        self.folder = folder
        self.counts = np.load(os.path.join(folder, "counts.npy"), mmap_mode="r")
        self.response = np.load(os.path.join(folder, "response.npy"))
        self.scale = None

    def annotate(self):
        with gzip.open(os.path.join(self.folder, "annotation.json.gz"), "rt") as src:
            notes = json.load(src)
        scale = np.ones((5, GENES), np.float32)
        for note in notes.values():
            scale[note["panel"], note["column"]] = 1000.0 / note["length"]
        self.scale = scale

    def __len__(self):
        return len(self.response)

    def __getitem__(self, i):
        row = self.counts[i] * self.scale
        row = np.log1p(row / row.sum(1, keepdims=True) * 1e4)
        return torch.from_numpy(row), torch.tensor(self.response[i])


def ready(_):
    get_worker_info().dataset.annotate()


class Panels(nn.Module):
    def __init__(self):
        super().__init__()
        self.read = nn.Linear(GENES, 256)
        self.mix = nn.TransformerEncoderLayer(256, 4, 512, dropout=0.1, batch_first=True)
        self.out = nn.Linear(256, 1)

    def forward(self, x):
        return self.out(self.mix(self.read(x)).mean(1)).squeeze(1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--keep-workers", action="store_true")
    ap.add_argument("--epochs", type=int, default=EPOCHS)
    args = ap.parse_args()
    torch.manual_seed(2)
    folder = tempfile.mkdtemp(prefix="panels")
    try:
        prepare(folder, 256)
        loader = DataLoader(Cohort(folder), batch_size=32, shuffle=True, num_workers=2,
                            worker_init_fn=ready, persistent_workers=args.keep_workers)
        net = Panels()
        opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
        begin = time.perf_counter()
        steps = 0
        for epoch in range(args.epochs):
            lost = 0.0
            for x, y in loader:
                loss = nn.functional.binary_cross_entropy_with_logits(net(x), y)
                opt.zero_grad()
                loss.backward()
                opt.step()
                lost += loss.item()
                steps += 1
            if epoch % 5 == 4:
                print(f"epoch {epoch} loss {lost / len(loader):.3f}")
        spent = time.perf_counter() - begin
        print(f"{steps} steps, {spent:.2f} s, {1000 * spent / steps:.2f} ms a step")
    finally:
        shutil.rmtree(folder)


EPOCHS = 16
ANNOTATED = 40000
if __name__ == "__main__":
    main()
