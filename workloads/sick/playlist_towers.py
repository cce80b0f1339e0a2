# truth: evaluation_heavy
# about: after every eight steps the whole catalogue is ranked for every held-out listener; that takes longer than the eight steps
# cure: --eval-every 100
# whatif: evaluation=12.5
# gain: run
# needs: torch
"""Two towers for playlists: listeners and songs, trained on pairs with negatives of the batch, judged by NDCG@20."""
import argparse
import math
import time

import torch
from torch import nn

LISTENERS, SONGS, TASTE = 6000, 12000, 8


def listening(pairs, seed=13):
    gen = torch.Generator().manual_seed(seed)
    who = torch.randint(0, LISTENERS, (pairs,), generator=gen)
    taste = who % TASTE
    what = (torch.rand(pairs, generator=gen) ** 2 * (SONGS // TASTE)).long() * TASTE + taste
    return who, what


class Tower(nn.Module):
    def __init__(self, count, width=64):
        super().__init__()
        self.names = nn.Embedding(count, width)
        self.net = nn.Sequential(nn.Linear(width, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, width))

    def forward(self, ids):
        return nn.functional.normalize(self.net(self.names(ids)), dim=1)


@torch.no_grad()
def ndcg(listeners, songs, who, what, at=20):
    listeners.eval()
    songs.eval()
    catalogue = songs(torch.arange(SONGS))
    gain = torch.tensor([1 / math.log2(place + 2) for place in range(at)])
    total = 0.0
    for some, heard in zip(who.split(256), what.split(256)):
        best = (listeners(some) @ catalogue.t()).topk(at, dim=1).indices
        total += float(((best == heard[:, None]).float() * gain).sum())
    listeners.train()
    songs.train()
    return total / len(who)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--eval-every", type=int, default=8)
    ap.add_argument("--steps", type=int, default=320)
    a = ap.parse_args()
    torch.manual_seed(2)
    who, what = listening(300_000)
    held_who, held_what = listening(3072, seed=14)
    listeners, songs = Tower(LISTENERS), Tower(SONGS)
    optimizer = torch.optim.Adam([*listeners.parameters(), *songs.parameters()], lr=2e-3)
    begin = time.perf_counter()
    for step in range(1, a.steps + 1):
        pick = torch.randint(0, len(who), (512,))
        scores = listeners(who[pick]) @ songs(what[pick]).t() / 0.1
        loss = nn.functional.cross_entropy(scores, torch.arange(len(pick)))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % a.eval_every == 0:
            print(f"step {step}: loss {loss.item():.3f}, NDCG@20 {ndcg(listeners, songs, held_who, held_what):.4f}")
    took = time.perf_counter() - begin
    print(f"{a.steps} steps, {took:.2f} s, {1e3 * took / a.steps:.1f} ms a step")


if __name__ == "__main__":
    main()
