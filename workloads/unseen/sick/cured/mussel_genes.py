# The cure of ../mussel_genes.py: the k-mers are counted with array operations.
"""Which of six mussel populations does a long read come from?

Reads are kept in a FASTA file; a read becomes the frequencies of its canonical k-mers (a
k-mer and its reverse complement count as one) and a multilayer perceptron sorts them.
"""
import argparse
import os
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

POPULATIONS = 6
LETTERS = np.frombuffer(b"ACGT", np.uint8)


def write_fasta(path, reads, length, seed):
    """Reads from first order Markov chains, one chain to a population."""
    rng = np.random.default_rng(seed)
    chains = rng.dirichlet(np.full(4, 3.0), size=(POPULATIONS, 4)).cumsum(axis=2)
    owners = rng.integers(POPULATIONS, size=reads)
    state = rng.integers(4, size=reads)
    letters = np.empty((reads, length), np.int64)
    for place in range(length):
        letters[:, place] = state
        draw = rng.random((reads, 1))
        state = (draw > chains[owners, state]).sum(axis=1).clip(0, 3)
    with open(path, "w") as out:
        for number in range(reads):
            out.write(f">read{number} population={owners[number]}\n")
            out.write(LETTERS[letters[number]].tobytes().decode() + "\n")


class KmerSpectrum:
    """Turns a read into the relative frequencies of its canonical k-mers."""

    def __init__(self, k):
        self.k = k
        self.size = 4 ** k
        self.code = np.zeros(256, np.int64)
        self.code[LETTERS] = np.arange(4)
        self.powers = 4 ** np.arange(k - 1, -1, -1)
        numbers = np.arange(self.size)
        digits = numbers[:, None] // self.powers % 4
        self.canonical = np.minimum(numbers, (3 - digits[:, ::-1]) @ self.powers)

    def __call__(self, read):
        codes = self.code[np.frombuffer(read.encode(), np.uint8)]
        count = len(codes) - self.k + 1
        numbers = np.zeros(count, np.int64)
        for place in range(self.k):
            numbers += codes[place:place + count] * self.powers[place]
        counts = np.bincount(self.canonical[numbers], minlength=self.size)
        return torch.from_numpy((counts * (100.0 / count)).astype(np.float32))


class Reads(Dataset):
    def __init__(self, path, transform):
        self.path = path
        self.transform = transform
        self.places, self.owners = [], []
        with open(path) as lines:
            while True:
                head = lines.readline()
                if not head:
                    break
                self.owners.append(int(head.rsplit("=", 1)[1]))
                self.places.append(lines.tell())
                lines.readline()

    def __len__(self):
        return len(self.places)

    def __getitem__(self, number):
        with open(self.path) as lines:
            lines.seek(self.places[number])
            read = lines.readline().strip()
        return self.transform(read), self.owners[number]


def make_model(features):
    return nn.Sequential(nn.Linear(features, 384), nn.ReLU(), nn.Dropout(0.2),
                         nn.Linear(384, 192), nn.ReLU(), nn.Linear(192, POPULATIONS))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reads", type=int, default=1600)
    parser.add_argument("--length", type=int, default=2400)
    parser.add_argument("-k", type=int, default=4)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()

    torch.manual_seed(5)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="mussel") as folder:
        path = os.path.join(folder, "reads.fasta")
        write_fasta(path, args.reads, args.length, seed=5)
        spectrum = KmerSpectrum(args.k)
        loader = DataLoader(Reads(path, spectrum), batch_size=args.batch, shuffle=True, drop_last=True,
                            num_workers=args.workers, persistent_workers=args.workers > 0)
        model = make_model(spectrum.size)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        criterion = nn.CrossEntropyLoss()
        for epoch in range(args.epochs):
            total = 0.0
            for spectra, owners in loader:
                optimizer.zero_grad()
                loss = criterion(model(spectra), owners)
                loss.backward()
                optimizer.step()
                total += loss.item()
            print(f"epoch {epoch + 1}: mean loss {total / len(loader):.4f}")


if __name__ == "__main__":
    main()
