#!/usr/bin/env python3
"""Delay of a bus at the coming stops, from the delays of the buses ahead of it on the line."""
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

STOPS, FEATURES, TRIPS, BATCH, WIDTH, HEADS = 72, 8, 1440, 24, 64, 4


def trips(rng):
    delay = np.cumsum(rng.normal(0, 0.4, (TRIPS, STOPS + 1)), 1).astype(np.float32)
    other = rng.normal(0, 1, (TRIPS, STOPS, FEATURES - 1)).astype(np.float32)
    seen = np.concatenate([delay[:, :STOPS, None], other], 2)
    return TensorDataset(torch.from_numpy(seen), torch.from_numpy(delay[:, 1:].copy()))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.register_buffer("ahead", torch.ones(STOPS, STOPS, dtype=torch.bool).triu(1))
        self.last = None

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, n, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        score = q @ k.transpose(2, 3) * (WIDTH // HEADS) ** -0.5
        weight = score.masked_fill(self.ahead, float("-inf")).softmax(-1)
        self.last = weight.detach()
        return x + self.out((weight @ v).transpose(1, 2).reshape(b, n, WIDTH))


class Delays(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(FEATURES, WIDTH)
        self.layers = nn.ModuleList(Attention() for _ in range(3))
        self.mix = nn.ModuleList(nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 128), nn.GELU(),
                                               nn.Linear(128, WIDTH)) for _ in range(3))
        self.head = nn.Linear(WIDTH, 1)

    def forward(self, x):
        x = self.stem(x)
        for attention, mix in zip(self.layers, self.mix):
            x = attention(x)
            x = x + mix(x)
        return self.head(x).squeeze(2)


def main():
    torch.manual_seed(6)
    loader = DataLoader(trips(np.random.default_rng(6)), batch_size=BATCH, shuffle=True)
    model = Delays()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    steps, begin = 0, time.perf_counter()
    for epoch in range(3):
        for seen, delay in loader:
            loss = nn.functional.huber_loss(model(seen), delay)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
        print(f"epoch {epoch + 1}: loss {loss.item():.3f}")
    seconds = time.perf_counter() - begin
    first, last = model.layers[0].last[0, 0, -1], model.layers[-1].last[0, 0, -1]
    print(f"stop most looked at: {first.argmax().item()} in the first layer, {last.argmax().item()} in the last")
    print(f"{steps} steps in {seconds:.2f} s, {1000 * seconds / steps:.1f} ms a step")


if __name__ == "__main__":
    main()
