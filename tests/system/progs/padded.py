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


def main():
    collate = by_sequence if WAY == "sequence" else by_mask
    loader = DataLoader(LENGTHS, batch_size=16, num_workers=WORKERS, collate_fn=collate)
    model = nn.Sequential(nn.Embedding(4, 256), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    cells = filled = 0
    for words in loader:
        words = words if WAY == "sequence" else words["input_ids"]
        cells += words.numel()
        filled += int(words.sum())
        model(words).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    json.dump({"padding": 1 - filled / cells}, sys.stdout)


if __name__ == "__main__":
    main()
