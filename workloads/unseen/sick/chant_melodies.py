# truth: padding_waste
# about: every melody is filled up to the longest one of the whole collection, though most have a tenth of its notes, so attention and feed-forward work mostly on filling
# cure: --by-length
# needs: torch numpy
"""Gregorian chant: the mode (1 to 8) of a melody from its notes, with a small transformer."""
import argparse
import random
import time

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

PITCHES, MODES, LONGEST = 24, 8, 320


def sing(count):
    rng = np.random.default_rng(15)
    melodies = []
    for i in range(count):
        mode = int(rng.integers(MODES))
        n = LONGEST if i == 0 else int(np.clip(rng.lognormal(3.4, 0.5), 8, LONGEST))
        notes = 1 + np.clip(np.cumsum(rng.integers(-2, 3, n)) + 2 * mode, 0, PITCHES - 1)
        melodies.append((torch.from_numpy(notes), mode))
    return melodies


def whole_book(batch):
    notes = torch.zeros(len(batch), LONGEST, dtype=torch.long)
    for row, (melody, _) in zip(notes, batch):
        row[:len(melody)] = melody
    return notes, torch.tensor([mode for _, mode in batch])


def as_needed(batch):
    return pad_sequence([melody for melody, _ in batch], batch_first=True), torch.tensor([mode for _, mode in batch])


def neighbours(melodies, size):
    """Batches of melodies of about the same length, in random order."""
    order = sorted(range(len(melodies)), key=lambda i: len(melodies[i][0]))
    batches = [order[i:i + size] for i in range(0, len(order), size)]
    random.Random(4).shuffle(batches)
    return batches


class ModeReader(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.note = nn.Embedding(PITCHES + 1, dim, padding_idx=0)
        self.place = nn.Parameter(0.02 * torch.randn(LONGEST, dim))
        layer = nn.TransformerEncoderLayer(dim, 4, 2 * dim, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2)
        self.mode = nn.Linear(dim, MODES)

    def forward(self, notes):
        empty = notes == 0
        h = self.layers(self.note(notes) + self.place[:notes.shape[1]], src_key_padding_mask=empty)
        h = h.masked_fill(empty[..., None], 0).sum(1) / (~empty).sum(1, keepdim=True)
        return self.mode(h)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--by-length", action="store_true")
    ap.add_argument("--steps", type=int, default=110)
    args = ap.parse_args()
    torch.manual_seed(15)
    torch.set_num_threads(2)
    melodies = sing(16 * args.steps)
    if args.by_length:
        loader = DataLoader(melodies, batch_sampler=neighbours(melodies, 16), collate_fn=as_needed)
    else:
        loader = DataLoader(melodies, batch_size=16, shuffle=True, collate_fn=whole_book)
    reader = ModeReader()
    opt = torch.optim.AdamW(reader.parameters(), 1e-3)
    began, cpu = time.perf_counter(), time.process_time()
    for step, (notes, mode) in enumerate(loader):
        loss = nn.functional.cross_entropy(reader(notes), mode)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 15 == 0:
            print("%4d  %.3f" % (step, loss.item()))
    took, cpu = time.perf_counter() - began, time.process_time() - cpu
    print("%d steps, %.1f ms each, cpu %.1f ms" % (args.steps, 1e3 * took / args.steps, 1e3 * cpu / args.steps))


if __name__ == "__main__":
    main()
