# The same as discharge_letters.py beside the folder, with a tokenizer that stops at what the model takes.
"""Assigns hospital discharge letters to wards, with a hand-written word piece tokenizer."""
import re
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

TOKENS, BATCH, WARDS = 128, 16, 6
WORD = re.compile(r"[a-z]+|[0-9]+|[^\sa-z0-9]")


def vocabulary(rng):
    starts = ["".join(p) for p in rng.choice(list("abcdefghilmnoprstuv"), (1500, 4))]
    ends = ["".join(p) for p in rng.choice(list("abcdefghilmnoprstuv"), (500, 2))]
    return starts, ends


class Letters(Dataset):
    def __init__(self, count=4000):
        rng = np.random.default_rng(17)
        starts, ends = vocabulary(rng)
        words = [starts[a] + ends[b] for a, b in zip(rng.integers(0, 1500, 6000), rng.integers(0, 500, 6000))]
        self.pieces = {piece: i + 2 for i, piece in enumerate(sorted(set(starts) | set(ends)))}
        self.wards = rng.integers(0, WARDS, count)
        self.texts = []
        for i in range(count):
            chosen = rng.integers(0, 1000, int(rng.integers(90, 180))) + 1000 * self.wards[i]
            text = " ".join(words[k] for k in chosen) + "."
            if rng.random() < 0.015:  # the scanned file hangs behind the letter
                page = " ".join(words[k] for k in rng.integers(0, 6000, 1000)) + ". "
                text += page * int(rng.integers(85, 115))
            self.texts.append(text)

    def __len__(self):
        return len(self.texts)

    def split(self, word):
        """The longest known pieces, from the left."""
        found, at = [], 0
        while at < len(word):
            for end in range(min(len(word), at + 6), at, -1):
                piece = self.pieces.get(word[at:end])
                if piece:
                    found.append(piece)
                    at = end
                    break
            else:
                found.append(1)
                at += 1
        return found

    def tokens(self, text):
        found = []
        for word in WORD.finditer(text[:TOKENS * 16].lower()):
            found.extend(self.split(word.group()))
            if len(found) >= TOKENS:
                break
        return found[:TOKENS]

    def __getitem__(self, i):
        found = self.tokens(self.texts[i])
        return torch.tensor(found + [0] * (TOKENS - len(found))), int(self.wards[i])


class Ward(nn.Module):
    def __init__(self, pieces):
        super().__init__()
        self.table = nn.Embedding(pieces, 48, padding_idx=0)
        self.slide = nn.Conv1d(48, 64, 3, padding=1)
        self.decide = nn.Linear(64, WARDS)

    def forward(self, tokens):
        return self.decide(torch.relu(self.slide(self.table(tokens).transpose(1, 2))).amax(2))


def main():
    torch.manual_seed(17)
    letters = Letters()
    loader = DataLoader(letters, batch_size=BATCH, shuffle=True, num_workers=2)
    model = Ward(len(letters.pieces) + 2)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=.02)
    steps, right = 0, 0
    began = time.perf_counter()
    for tokens, ward in loader:
        scores = model(tokens)
        loss = nn.functional.cross_entropy(scores, ward)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right += int((scores.argmax(1) == ward).sum())
        steps += 1
    took = time.perf_counter() - began
    print("%d steps, %.0f %% right, %.1f ms per step" % (steps, 100 * right / len(letters), took / steps * 1e3))


if __name__ == "__main__":
    main()
