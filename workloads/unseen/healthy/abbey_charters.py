# truth: none
# about: a causal transformer on windows of a text that lies in memory; the step is matrix products in single precision
# needs: torch
"""A letter model of charters: three causal blocks, windows of 96 letters, cosine schedule, now and then a look at held-out text."""
import argparse
import math
import random
import time

import torch
from torch import nn
from torch.nn import functional as F

WINDOW, BATCH, WIDTH, HEADS = 96, 24, 128, 4


def charters(seed, count):
    dice = random.Random(seed)
    names = ["abbas", "prior", "comes", "rex", "dux", "episcopus"]
    things = ["vineam", "molendinum", "silvam", "decimam", "ecclesiam", "terram"]
    return " ".join(f"ego {dice.choice(names)} dono {dice.choice(things)} cum {dice.choice(things)} anno {dice.randint(900, 1300)}"
                    for _ in range(count))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.join = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.feed = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.ReLU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x, hidden):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.before(x)).view(b, t, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        weight = (q @ k.transpose(-1, -2) / math.sqrt(WIDTH // HEADS)).masked_fill(hidden, float("-inf")).softmax(-1)
        x = x + self.join((weight @ v).transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.feed(self.between(x))


class Scribe(nn.Module):
    def __init__(self, letters):
        super().__init__()
        self.letter, self.place = nn.Embedding(letters, WIDTH), nn.Embedding(WINDOW, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.out = nn.Linear(WIDTH, letters)
        self.register_buffer("hidden", torch.ones(WINDOW, WINDOW, dtype=torch.bool).triu(1))

    def forward(self, text):
        x = self.letter(text) + self.place.weight
        for block in self.blocks:
            x = block(x, self.hidden)
        return self.out(x)


def windows(text, dice):
    at = torch.randint(0, len(text) - WINDOW - 1, (BATCH, 1), generator=dice) + torch.arange(WINDOW)
    return text[at], text[at + 1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=80)
    options = parser.parse_args()
    torch.set_num_threads(2)
    torch.manual_seed(9)
    dice = torch.Generator().manual_seed(9)
    raw = charters(9, 6000)
    alphabet = {c: i for i, c in enumerate(sorted(set(raw)))}
    text = torch.tensor([alphabet[c] for c in raw])
    train, held = text[:-20000], text[-20000:]
    scribe = Scribe(len(alphabet))
    optimizer = torch.optim.AdamW(scribe.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.steps)
    began, cpu = time.perf_counter(), time.process_time()
    for step in range(1, options.steps + 1):
        x, y = windows(train, dice)
        loss = F.cross_entropy(scribe(x).flatten(0, 1), y.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 40 == 0:
            with torch.no_grad():
                x, y = windows(held, dice)
                print(f"{step}: held out {F.cross_entropy(scribe(x).flatten(0, 1), y.flatten()).item():.3f}")
    took = time.perf_counter() - began
    print(f"{1000 * took / options.steps:.2f} ms a step, {time.process_time() - cpu:.1f} s of CPU, {took:.2f} s")


if __name__ == "__main__":
    main()
