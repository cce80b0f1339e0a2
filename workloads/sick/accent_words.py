#!/usr/bin/env python3
# truth: epoch_boundary_stall
# about: the loader starts its two workers anew at every epoch, each parses the pronunciation lexicon again before its first sample, and an epoch is only a dozen steps long
# also: data_loading_bound
# cure: --keep-workers
# gain: run
# needs: torch numpy
"""Accent of a speaker from words read aloud: phone strings aligned to pitch contours, a GRU on top.

Every epoch goes over the few speakers we have; the lexicon belongs to the worker that needs it.
"""
import argparse
import os
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

PHONES = "aa ae ah ao aw ay b ch d dh eh er ey f g hh ih iy jh k l m n ng ow oy p r s sh t th uh uw v w y z zh".split()
WORDS, CLIPS, LENGTH, ACCENTS = 60000, 192, 40, 6


def write_lexicon(path, rng):
    with open(path, "w") as out:
        for word in range(WORDS):
            phones = rng.integers(len(PHONES), size=int(rng.integers(3, 9)))
            out.write(f"w{word:05d}\t{' '.join(PHONES[p] for p in phones)}\t{rng.random():.5f}\n")


def read_lexicon(path):
    number = {p: i + 1 for i, p in enumerate(PHONES)}
    lexicon = {}
    with open(path) as lines:
        for line in lines:
            word, phones, weight = line.rstrip("\n").split("\t")
            lexicon[word] = ([number[p] for p in phones.split()], float(weight))
    return lexicon


class Clips(Dataset):
    def __init__(self, path, rng):
        self.path, self.lexicon = path, None
        self.said = [[f"w{w:05d}" for w in rng.integers(WORDS, size=9)] for _ in range(CLIPS)]
        self.pitch = rng.normal(0, 1, (CLIPS, LENGTH, 7)).astype(np.float32)
        self.accent = rng.integers(ACCENTS, size=CLIPS)
        self.pitch += self.accent[:, None, None] * 0.2

    def __len__(self):
        return CLIPS

    def __getitem__(self, i):
        if self.lexicon is None:
            self.lexicon = read_lexicon(self.path)
        phones = np.zeros(LENGTH, np.int64)
        joined = [p for word in self.said[i] for p in self.lexicon[word][0]][:LENGTH]
        phones[:len(joined)] = joined
        return torch.from_numpy(phones), torch.from_numpy(self.pitch[i]), int(self.accent[i])


class AccentNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.phones = nn.Embedding(len(PHONES) + 1, 25)
        self.gru = nn.GRU(32, 96, batch_first=True)
        self.head = nn.Linear(96, ACCENTS)

    def forward(self, phones, pitch):
        out, _ = self.gru(torch.cat([self.phones(phones), pitch], 2))
        return self.head(out.mean(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep-workers", action="store_true")
    parser.add_argument("--epochs", type=int, default=18)
    args = parser.parse_args()
    torch.manual_seed(3)
    rng = np.random.default_rng(3)
    with tempfile.TemporaryDirectory(prefix="accent_") as folder:
        path = os.path.join(folder, "lexicon.tsv")
        write_lexicon(path, rng)
        loader = DataLoader(Clips(path, rng), batch_size=16, shuffle=True, num_workers=2,
                            persistent_workers=args.keep_workers)
        model = AccentNet()
        optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
        steps, begin = 0, time.perf_counter()
        for epoch in range(args.epochs):
            for phones, pitch, accent in loader:
                loss = nn.functional.cross_entropy(model(phones, pitch), accent)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                steps += 1
            if epoch % 6 == 5:
                print(f"epoch {epoch + 1}: loss {loss.item():.3f}")
        seconds = time.perf_counter() - begin
        print(f"{steps} steps in {seconds:.2f} s, {1000 * seconds / steps:.1f} ms a step")
        del loader


if __name__ == "__main__":
    main()
