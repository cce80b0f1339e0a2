# truth: none
# about: one worker parses the manifests of container ships ahead of the training, in less time than a step takes, so that the training has a batch waiting whenever it asks; both cores have work
# needs: torch numpy cores:2
"""Does a container have to be opened? A recurrent net over the lines of its manifest."""
import contextlib
import os
import shutil
import tempfile
import time
import zlib

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, IterableDataset

SYLLABLES = "ba co du fe gi lo mu ne pi ra so tu va wo ze kli stra pre".split()
LINES, BUCKETS, COUNT, BATCH, EPOCHS = 20, 40, 3200, 64, 4


@contextlib.contextmanager
def harbour_files(seed=17, per_file=800):
    rng = np.random.default_rng(seed)
    names = ["".join(rng.choice(SYLLABLES, 3)) for _ in range(800)]
    folder = tempfile.mkdtemp(prefix="port_")
    try:
        paths = []
        for first in range(0, COUNT, per_file):
            paths.append(os.path.join(folder, f"manifest_{first:05d}.txt"))
            with open(paths[-1], "w") as f:
                for k in range(first, first + per_file):
                    goods = rng.integers(0, len(names), LINES).tolist()
                    tons = rng.gamma(2.0, 3.0, LINES).tolist()
                    opened = int(sum(g % 17 == 0 for g in goods) >= 2)
                    f.write(f"C{k:06d};{opened};" + "|".join(f"{names[g]}:{t:.2f}" for g, t in zip(goods, tons)) + "\n")
        yield paths
    finally:
        shutil.rmtree(folder)


class Manifests(IterableDataset):
    def __init__(self, paths, pool=512):
        self.paths, self.pool, self.turn = paths, pool, 0

    def parse(self, line):
        _, opened, cargo = line.rstrip().split(";")
        goods, tons = zip(*(entry.split(":") for entry in cargo.split("|")))
        bag = np.zeros((LINES, BUCKETS), np.float32)
        for row, name in enumerate(goods):
            data = name.encode()
            for at in range(len(data) - 2):
                bag[row, zlib.crc32(data[at:at + 3]) % BUCKETS] += 1
        return bag, np.log1p(np.array(tons, dtype=np.float32)), float(opened)

    def batches(self, rows):
        for at in range(0, len(rows), BATCH):
            goods, tons, opened = zip(*rows[at:at + BATCH])
            yield torch.from_numpy(np.stack(goods)), torch.from_numpy(np.stack(tons)), torch.tensor(opened)

    def __iter__(self):
        rng = np.random.default_rng(self.turn)
        self.turn += 1
        waiting = []
        for path in rng.permutation(self.paths):
            with open(path, buffering=1 << 20) as f:
                for line in f:
                    waiting.append(self.parse(line))
                    if len(waiting) == self.pool:
                        order = rng.permutation(len(waiting))
                        yield from self.batches([waiting[i] for i in order])
                        waiting = []
        yield from self.batches(waiting)


class Inspector(nn.Module):
    def __init__(self):
        super().__init__()
        self.read = nn.LSTM(BUCKETS + 1, 112, batch_first=True, bidirectional=True)
        self.say = nn.Linear(224, 1)

    def forward(self, goods, tons):
        seen, _ = self.read(torch.cat([goods, tons[..., None]], -1))
        return self.say(seen.mean(1))[:, 0]


def main():
    torch.manual_seed(17)
    torch.set_num_threads(1)
    model = Inspector()
    optimizer = optim.AdamW(model.parameters(), lr=3e-3)
    with harbour_files() as paths:
        loader = DataLoader(Manifests(paths), batch_size=None, num_workers=1, prefetch_factor=4, persistent_workers=True)
        steps, began = 0, time.perf_counter()
        for epoch in range(EPOCHS):
            total, count = 0.0, 0
            for goods, tons, opened in loader:
                loss = nn.functional.binary_cross_entropy_with_logits(model(goods, tons), opened)
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
                total, count = total + loss.item(), count + 1
            steps += count
            print(f"epoch {epoch}: {total / count:.4f}")
        print(f"{steps} steps, {1000 * (time.perf_counter() - began) / steps:.2f} ms a step")


if __name__ == "__main__":
    main()
