# truth: padding_waste
# about: sentences are batched as they come, so that each batch is as wide as its longest sentence and most of what the network computes is padding
# cure: --bucket
# needs: torch
"""A tagger of word sequences of very different lengths."""
import argparse
import random

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

WORDS, TAGS, BATCH = 2000, 12, 32


class Sentences(Dataset):
    """Most are short; about one in ten is many times as long."""

    def __init__(self, count, seed):
        rng = random.Random(seed)
        self.lengths = [
            rng.randint(200, 320) if rng.random() < 0.1 else rng.randint(8, 40) for _ in range(count)
        ]
        g = torch.Generator().manual_seed(seed)
        self.words = [torch.randint(1, WORDS, (n,), generator=g) for n in self.lengths]

    def __len__(self):
        return len(self.words)

    def __getitem__(self, i):
        return self.words[i], self.words[i] % TAGS


def collate(samples):
    words = pad_sequence([w for w, _ in samples], batch_first=True)
    tags = pad_sequence([t for _, t in samples], batch_first=True, padding_value=-1)
    return words, tags


class Buckets:
    """Batches of sentences of about one length, in random order."""

    def __init__(self, lengths, seed):
        order = sorted(range(len(lengths)), key=lengths.__getitem__)
        self.batches = [order[i : i + BATCH] for i in range(0, len(order), BATCH)]
        self.rng = random.Random(seed)

    def __iter__(self):
        self.rng.shuffle(self.batches)
        return iter(self.batches)

    def __len__(self):
        return len(self.batches)


class Tagger(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.words = nn.Embedding(WORDS, width)
        self.layers = nn.Sequential(
            nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, 2 * width), nn.ReLU(), nn.Linear(2 * width, TAGS)
        )

    def forward(self, words):
        return self.layers(self.words(words))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bucket", action="store_true")
    parser.add_argument("--epochs", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(2)
    data = Sentences(1600, 2)
    if args.bucket:
        loader = DataLoader(data, batch_sampler=Buckets(data.lengths, 2), collate_fn=collate)
    else:
        loader = DataLoader(data, batch_size=BATCH, shuffle=True, collate_fn=collate)
    model = Tagger()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loss_of = nn.CrossEntropyLoss(ignore_index=-1)
    for epoch in range(args.epochs):
        for words, tags in loader:
            loss = loss_of(model(words).flatten(0, 1), tags.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1}: {loss.item():.3f}")


if __name__ == "__main__":
    main()
