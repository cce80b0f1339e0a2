"""Pads batches, or masks them, and counts what it padded: workers and way by argument."""
import json
import sys

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

WAY, WORKERS = sys.argv[1], int(sys.argv[2])
LENGTHS = [5 + (i * 37) % 90 if i % 8 else 300 for i in range(512)]


def by_sequence(lengths):
    return pad_sequence([torch.ones(n, dtype=torch.long) for n in lengths], True)


def by_mask(lengths):
    mask = (torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]).long()
    return {"input_ids": mask.clone(), "attention_mask": mask}


def to_limit(lengths, first=False):
    words = torch.zeros((len(lengths), 320), dtype=torch.int32 if first else torch.long)
    for row, n in zip(words, lengths):
        (row[320 - n:] if first else row[:n]).fill_(1)
    return words, torch.tensor(lengths)


def behind_padding(lengths):
    return to_limit(lengths, first=True)


def main():
    collate = {
        "sequence": by_sequence, "mask": by_mask, "limit": to_limit, "first": behind_padding
    }[WAY]
    loader = DataLoader(LENGTHS, batch_size=16, num_workers=WORKERS, collate_fn=collate)
    model = nn.Sequential(nn.Embedding(4, 256), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    cells = filled = 0
    for words in loader:
        if WAY != "sequence":
            words = words["input_ids"] if WAY == "mask" else words[0]
        cells += words.numel()
        filled += int(words.sum())
        model(words).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    json.dump({"padding": 1 - filled / cells}, sys.stdout)


if __name__ == "__main__":
    main()
