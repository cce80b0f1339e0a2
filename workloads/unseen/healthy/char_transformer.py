# truth: none
# about: a small causal transformer that is busy with its matrix products; one worker cuts windows from a mapped token file far faster than they are used
# needs: torch numpy
import argparse
import math
import os
import tempfile

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

CONTEXT = 128


class Windows(Dataset):
    def __init__(self, path):
        self.tokens = np.load(path, mmap_mode="r")

    def __len__(self):
        return (len(self.tokens) - 1) // CONTEXT

    def __getitem__(self, i):
        piece = torch.from_numpy(self.tokens[i * CONTEXT:(i + 1) * CONTEXT + 1].astype(np.int64))
        return piece[:-1], piece[1:]


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.register_buffer("mask", torch.triu(torch.ones(CONTEXT, CONTEXT, dtype=torch.bool), 1))

    def attend(self, x):
        b, t, d = x.shape
        q, k, v = (z.view(b, t, self.heads, d // self.heads).transpose(1, 2) for z in self.qkv(x).split(d, dim=2))
        scores = (q @ k.transpose(2, 3) / math.sqrt(d // self.heads)).masked_fill(self.mask[:t, :t], -1e9)
        return self.proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))

    def forward(self, x):
        x = x + self.attend(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class CharTransformer(nn.Module):
    def __init__(self, vocab=96, d=192, layers=2, heads=4):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, d), nn.Embedding(CONTEXT, d)
        self.blocks = nn.Sequential(*(Block(d, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, vocab, bias=False)

    def forward(self, idx):
        x = self.tok(idx) + self.pos(torch.arange(idx.shape[1]))
        return self.head(self.norm(self.blocks(x)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--steps", type=int, default=60)
    args = parser.parse_args()
    torch.manual_seed(1337)
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "chars.npy")
        np.save(path, np.random.default_rng(0).integers(0, 96, size=CONTEXT * args.batch * args.steps + 1).astype(np.uint8))
        loader = DataLoader(Windows(path), batch_size=args.batch, shuffle=True, num_workers=1)
        model = CharTransformer()
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
        for step, (x, y) in enumerate(loader):
            loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            if step % 20 == 0:
                print(f"step {step:3d} loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
