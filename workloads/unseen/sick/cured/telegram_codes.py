# The same with all telegrams in one block of bytes and their ends in an array.
"""Tells commercial from private telegrams by hashed code words."""
import sys
import time
import zlib

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

COUNT, BUCKETS, WORDS = 300_000, 20_000, 8
STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 320


def telegrams():
    """(office, text, class) for each telegram; the text begins with eight words from a code book of 5000."""
    rng = np.random.default_rng(61)
    book = ["".join(chr(97 + c) for c in row) for row in rng.integers(26, size=(5000, 9))]
    words = rng.integers(5000, size=(COUNT, WORDS)).tolist()
    letters = "".join(book)
    for number, row in enumerate(words):
        yield f"office-{number % 977:04d}-{number:07d}", " ".join([book[w] for w in row]) + " " + letters[number % 40000:number % 40000 + 900], row[0] % 2


class Archive(Dataset):
    def __init__(self):
        ends, kinds, parts = [0], [], bytearray()
        for office, text, kind in telegrams():
            parts += f"{office}|{text}".encode()
            ends.append(len(parts))
            kinds.append(kind)
        self.ends, self.kinds = np.array(ends), np.array(kinds, np.int8)
        self.parts = np.frombuffer(bytes(parts), np.uint8)

    def __len__(self):
        return len(self.kinds)

    def row(self, i):
        office, text = self.parts[self.ends[i]:self.ends[i + 1]].tobytes().decode().split("|")
        return office, text, self.kinds[i]

    def __getitem__(self, i):
        office, text, kind = self.row(i)
        hashed = [zlib.crc32(w.encode()) % BUCKETS for w in text.split(" ", WORDS)[:WORDS]]
        hashed.append(zlib.crc32(office[:11].encode()) % BUCKETS)
        return torch.tensor(hashed), float(kind)


class Clerk(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.EmbeddingBag(BUCKETS, 48, sparse=False)
        self.judge = nn.Sequential(nn.Linear(48, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1))

    def forward(self, x):
        return self.judge(self.words(x)).squeeze(1)


def main():
    torch.manual_seed(61)
    archive = Archive()
    order = torch.utils.data.RandomSampler(archive, replacement=True, num_samples=512 * STEPS)
    loader = DataLoader(archive, batch_size=512, sampler=order, num_workers=2)
    clerk = Clerk()
    optimizer = torch.optim.Adam(clerk.parameters(), lr=2e-3)
    began, cpu = time.perf_counter(), time.process_time()
    for hashed, kind in loader:
        loss = nn.functional.binary_cross_entropy_with_logits(clerk(hashed), kind.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    took = time.perf_counter() - began
    print(f"loss {loss.item():.3f}; {1000 * took / STEPS:.2f} ms a step, {time.process_time() - cpu:.1f} s of CPU, {took:.2f} s")


if __name__ == "__main__":
    main()
