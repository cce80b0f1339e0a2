# truth: epoch_boundary_stall
# about: an epoch is eight steps long and the loader starts its two workers anew for each; every new worker first builds its pronouncing lexicon again before it can deliver
# also: data_loading_bound
# cure: --keep
# gain: run
# needs: torch numpy
"""Tells which valley a speaker comes from by words, spelt out as sounds by a lexicon of rules."""
import argparse
import itertools
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SYLLABLES = [a + b for a, b in itertools.product("bdfgklmnprstvz", ["a", "e", "i", "o", "u", "ai", "ou"])]
LENGTH, BATCH, EPOCHS = 20, 24, 36


def lexicon():
    """All words of up to three syllables and the numbers of their sounds."""
    sounds = {letter: k + 1 for k, letter in enumerate("abdefgiklmnoprstuvz")}
    known = {}
    for first, second in itertools.product(SYLLABLES, SYLLABLES):
        for last in SYLLABLES[::9]:
            word = first + second + last
            known[word] = bytes([sounds[letter] for letter in word])
    return known


class Speakers(Dataset):
    known = None

    def __init__(self, count=BATCH * 8):
        rng = np.random.default_rng(2)
        self.words, self.valleys = [], rng.integers(0, 4, count)
        for valley in self.valleys:
            mine = rng.integers(0, 60, 12) + 12 * valley
            self.words.append([SYLLABLES[k % 98] + SYLLABLES[(k * 7) % 98] + SYLLABLES[9 * (k % 10)] for k in mine])

    def __len__(self):
        return len(self.words)

    def __getitem__(self, i):
        spoken = np.zeros((len(self.words[i]), LENGTH), np.int64)
        for row, word in zip(spoken, self.words[i]):
            sounds = Speakers.known[word]
            row[:len(sounds)] = np.frombuffer(sounds, np.uint8)
        return torch.from_numpy(spoken).flatten(), int(self.valleys[i])


def ready(_):
    Speakers.known = lexicon()


class Valley(nn.Module):
    def __init__(self):
        super().__init__()
        self.sound = nn.Embedding(20, 32, padding_idx=0)
        self.hear = nn.GRU(32, 48, batch_first=True)
        self.place = nn.Linear(48, 4)

    def forward(self, spoken):
        heard, _ = self.hear(self.sound(spoken[:, ::4]))
        return self.place(heard.mean(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep", action="store_true", help="keep the workers from epoch to epoch")
    keep = parser.parse_args().keep
    torch.manual_seed(2)
    loader = DataLoader(Speakers(), batch_size=BATCH, shuffle=True, num_workers=2, worker_init_fn=ready,
                        persistent_workers=keep)
    model = Valley()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    steps, loss, first = 0, None, None
    for epoch in range(EPOCHS):
        for spoken, valley in loader:
            first = first or time.perf_counter()
            loss = nn.functional.cross_entropy(model(spoken), valley)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            steps += 1
    took = time.perf_counter() - first
    print("%d steps, last loss %.3f, %.1f ms per step" % (steps, loss.item(), took / steps * 1e3))


if __name__ == "__main__":
    main()
