#!/usr/bin/env python3
# truth: none
# about: a transformer over hand poses; clips of like length go together, the products are large and fill both cores, nothing waits
# needs: torch numpy
"""Recognises signs from the tracked points of two hands, clips between one and six seconds."""
import os
import time

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

POINTS, SIGNS, BUDGET = 84, 60, 1600


def clips(count):
    rng = np.random.default_rng(101)
    lengths = rng.integers(24, 150, count)
    signs = rng.integers(0, SIGNS, count)
    ways = rng.normal(0, 1, (SIGNS, POINTS)).astype(np.float32)
    data = []
    for length, sign in zip(lengths, signs):
        t = np.linspace(0, 1, length, dtype=np.float32)[:, None]
        noise = rng.normal(0, 0.5, (length, POINTS)).astype(np.float32)
        data.append(torch.from_numpy(np.sin(3 * t * ways[sign]) + noise))
    return data, torch.from_numpy(signs)


def buckets(lengths, rng):
    """Batches of about BUDGET frames, each of clips of about the same length."""
    order = np.lexsort((rng.random(len(lengths)), lengths))
    batches, at = [], 0
    while at < len(order):
        size = max(1, BUDGET // int(lengths[order[at]]))
        while size > 1 and at + size <= len(order) and size * int(lengths[order[at + size - 1]]) > BUDGET:
            size -= 1
        batches.append(order[at:at + size])
        at += size
    rng.shuffle(batches)
    return batches


class Signer(nn.Module):
    def __init__(self, width=160):
        super().__init__()
        self.enter = nn.Linear(POINTS, width)
        self.place = nn.Parameter(torch.randn(160, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 3)
        self.leave = nn.Linear(width, SIGNS)

    def forward(self, frames, missing):
        x = self.enter(frames) + self.place[: frames.shape[1]]
        x = self.encoder(x, src_key_padding_mask=missing)
        there = (~missing).unsqueeze(2).to(x.dtype)
        return self.leave((x * there).sum(1) / there.sum(1))


def main():
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    torch.manual_seed(47)
    rng = np.random.default_rng(47)
    data, signs = clips(750)
    lengths = np.array([len(c) for c in data])
    model = Signer()
    opt = torch.optim.AdamW(model.parameters(), lr=4e-4)
    steps, frames, slots, begin = 0, 0, 0, time.perf_counter()
    for epoch in range(2):
        total = torch.zeros(())
        for pick in buckets(lengths, rng):
            batch = pad_sequence([data[i] for i in pick], batch_first=True)
            missing = torch.arange(batch.shape[1]) >= torch.from_numpy(lengths[pick])[:, None]
            opt.zero_grad(set_to_none=True)
            loss = nn.functional.cross_entropy(model(batch, missing), signs[pick])
            loss.backward()
            opt.step()
            total += loss.detach() * len(pick)
            steps += 1
            frames += int(lengths[pick].sum())
            slots += missing.numel()
        print(f"epoch {epoch}: loss {float(total) / len(data):.3f}", flush=True)
    took = time.perf_counter() - begin
    print(f"padding {1 - frames / slots:.3f}; {steps} steps, {1e3 * took / steps:.1f} ms each, {took:.2f} s")


if __name__ == "__main__":
    main()
