# truth: padding_waste
# about: the histories are 8 to 400 visits long and most are short, but each batch takes them in random order and pads to its longest, so that seven tenths of what the network works on is padding
# cure: --by-length
# needs: torch numpy
"""Predicts readmission from the visits in a patient's history, with self attention over the visits."""
import argparse
import random
import time

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

CODES, BATCH, PATIENTS = 300, 16, 1920


def histories():
    generator = torch.Generator().manual_seed(9)
    found = []
    for _ in range(PATIENTS):
        length = int(torch.empty(1).log_normal_(3.4, .9, generator=generator).clamp(8, 400))
        codes = torch.randint(1, CODES, (length,), generator=generator)
        found.append((codes, float((codes < 40).float().mean() > .13)))
    return found


def batches(found, by_length):
    order = list(range(len(found)))
    random.shuffle(order)
    if by_length:  # alike lengths together, the batches still in random order
        order.sort(key=lambda i: len(found[i][0]))
    groups = [order[at:at + BATCH] for at in range(0, len(order), BATCH)]
    random.shuffle(groups)
    for group in groups:
        codes = pad_sequence([found[i][0] for i in group], batch_first=True)
        yield codes, torch.tensor([found[i][1] for i in group])


class History(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.codes = nn.Embedding(CODES, width, padding_idx=0)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True) for _ in range(2))
        self.out = nn.Linear(width, 1)

    def forward(self, codes):
        empty = codes == 0
        x = self.codes(codes)
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=empty)
        x = x.masked_fill(empty.unsqueeze(2), 0).sum(1) / (~empty).sum(1, keepdim=True)
        return self.out(x).squeeze(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--by-length", action="store_true", help="put histories of like length into a batch")
    by_length = parser.parse_args().by_length
    random.seed(9)
    torch.manual_seed(9)
    found = histories()
    model = History()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    steps, total = 0, 0.0
    began = time.perf_counter()
    for codes, back in batches(found, by_length):
        loss = nn.functional.binary_cross_entropy_with_logits(model(codes), back)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        steps += 1
    took = time.perf_counter() - began
    print("%d steps, mean loss %.3f, %.1f ms per step" % (steps, total / steps, took / steps * 1e3))


if __name__ == "__main__":
    main()
