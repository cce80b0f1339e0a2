# truth: none
# about: a small transformer learns proverbs letter by letter; the text is made in memory, batches are slices of one tensor, and the time goes into matrix products
# needs: torch
"""Letter-level transformer on proverbs put together by a grammar."""
import math
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

WHO = "a wise man;an idle hand;the early bird;a patient wife;the old miller;no good sailor;every second mouse".split(";")
DOES = "gathers;spoils;never forgets;always finds;pays twice for;sleeps upon;waits for".split(";")
WHAT = "the cheese;a fair wind;his neighbour's corn;rotten apples;deep water;the last word;silver".split(";")
WHEN = "before noon;in a dry year;when the cat is out;by candle light;after the feast".split(";")


def proverbs(count, seed=7):
    rnd = random.Random(seed)
    return "".join(f"{rnd.choice(WHO)} {rnd.choice(DOES)} {rnd.choice(WHAT)} {rnd.choice(WHEN)}.\n" for _ in range(count))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.ReLU(), nn.Linear(4 * dim, dim))

    def forward(self, x, mask):
        b, t, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        att = (q @ k.transpose(-1, -2) / math.sqrt(d // self.heads) + mask).softmax(-1)
        x = x + self.proj((att @ v).transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.ln2(x))


class Letters(nn.Module):
    def __init__(self, vocab, context, dim=128, heads=4, depth=3):
        super().__init__()
        self.token, self.place = nn.Embedding(vocab, dim), nn.Embedding(context, dim)
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(depth))
        self.norm, self.out = nn.LayerNorm(dim), nn.Linear(dim, vocab)
        self.register_buffer("mask", torch.full((context, context), float("-inf")).triu(1))

    def forward(self, idx):
        x = self.token(idx) + self.place.weight[: idx.shape[1]]
        for block in self.blocks:
            x = block(x, self.mask)
        return self.out(self.norm(x))


def main():
    torch.manual_seed(7)
    text = proverbs(4000)
    alphabet = sorted(set(text))
    code = {c: i for i, c in enumerate(alphabet)}
    stream = torch.tensor([code[c] for c in text])
    context, batch, steps = 64, 24, 120
    windows = stream.unfold(0, context + 1, 1)
    model = Letters(len(alphabet), context)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    warm = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / 20))
    for step in range(1, steps + 1):
        chunk = windows[torch.randint(len(windows), (batch,))]
        logits = model(chunk[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), chunk[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        warm.step()
        if step % 30 == 0:
            print(f"step {step}: {loss.item() / math.log(2):.2f} bits a letter")


if __name__ == "__main__":
    main()
