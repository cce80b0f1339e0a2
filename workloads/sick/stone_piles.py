# truth: evaluation_heavy
# about: after every fourth update the player is set against a strong opponent for three thousand full games, which takes several times as long as the updates between
# cure: --arena-every 40
# whatif: evaluation=10
# gain: run
# needs: torch
"""A player of Nim with five piles learns by advantage actor-critic from games against itself."""
import argparse
import os
import time

os.environ["OMP_NUM_THREADS"] = "1"

import torch
from torch import nn
from torch.distributions import Categorical

PILES, MOST = 5, 9
MOVES = PILES * MOST


class Player(nn.Module):
    def __init__(self, width=192):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(PILES * (MOST + 1), width), nn.ReLU(), nn.Dropout(0.05),
                                  nn.Linear(width, width), nn.ReLU())
        self.move = nn.Linear(width, MOVES)
        self.worth = nn.Linear(width, 1)

    def forward(self, piles):
        h = self.body(nn.functional.one_hot(piles, MOST + 1).flatten(1).float())
        take = torch.arange(1, MOST + 1)
        legal = (take[None, None] <= piles[:, :, None]).flatten(1)
        logits = self.move(h).masked_fill(~legal, -1e9)
        return logits, self.worth(h)[:, 0]


def take_stones(piles, moves):
    piles = piles.clone()
    rows = torch.arange(len(piles))
    piles[rows, moves // MOST] -= moves % MOST + 1
    return piles


def strong(piles, generator):
    """Mostly leaves a nim-sum of zero where there is such a move; else takes one stone of a random pile."""
    total = piles[:, 0]
    for k in range(1, PILES):
        total = total ^ piles[:, k]
    wanted = piles ^ total[:, None]
    can = (wanted < piles) & (torch.rand(len(piles), 1, generator=generator) < 0.7)
    pile = torch.where(can.any(1), can.long().argmax(1),
                       torch.multinomial((piles > 0).float() + 1e-9, 1, generator=generator)[:, 0])
    rows = torch.arange(len(piles))
    stones = torch.where(can.any(1), piles[rows, pile] - wanted[rows, pile], torch.ones_like(pile))
    return pile * MOST + stones - 1


def self_play(player, games, generator):
    piles = torch.randint(1, MOST + 1, (games, PILES), generator=generator)
    seen, chosen = [], []
    with torch.no_grad():
        for _ in range(6):
            live = piles.sum(1) > 0
            if not live.any():
                break
            logits, _ = player(piles)
            moves = Categorical(logits=logits).sample()
            seen.append(piles[live])
            chosen.append(moves[live])
            after = take_stones(piles, moves)
            piles = torch.where(live[:, None], after, piles)
    return torch.cat(seen), torch.cat(chosen)


def returns(piles, moves):
    """+1 for a move that leaves a nim-sum of zero, else -1."""
    left = take_stones(piles, moves)
    total = left[:, 0]
    for k in range(1, PILES):
        total = total ^ left[:, k]
    return torch.where(total == 0, 1.0, -1.0)


@torch.no_grad()
def arena(player, games, generator):
    player.eval()
    piles = torch.randint(1, MOST + 1, (games, PILES), generator=generator)
    won = torch.zeros(games, dtype=torch.bool)
    over = torch.zeros(games, dtype=torch.bool)
    ours = True
    while not over.all():
        if ours:
            moves = player(piles)[0].argmax(1)
        else:
            moves = strong(piles, generator)
        after = take_stones(piles, moves)
        piles = torch.where(over[:, None], piles, after)
        ended = (piles.sum(1) == 0) & ~over
        won |= ended & ours
        over |= ended
        ours = not ours
    player.train()
    return won.float().mean().item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--updates", type=int, default=160)
    ap.add_argument("--arena-every", type=int, default=4)
    ap.add_argument("--games", type=int, default=3000)
    a = ap.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(3)
    generator = torch.Generator().manual_seed(4)
    player = Player()
    optimizer = torch.optim.RMSprop(player.parameters(), lr=7e-4)
    best = 0.0
    began = time.perf_counter()
    for update in range(1, a.updates + 1):
        piles, moves = self_play(player, 64, generator)
        reward = returns(piles, moves)
        logits, worth = player(piles)
        policy = Categorical(logits=logits)
        gain = reward - worth.detach()
        loss = -(policy.log_prob(moves) * gain).mean() + 0.5 * (reward - worth).pow(2).mean() - 0.01 * policy.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if update % a.arena_every == 0:
            best = max(best, arena(player, a.games, generator))
    took = time.perf_counter() - began
    print(f"best share of games won: {best:.3f}; {a.updates} updates, {1000 * took / a.updates:.2f} ms an update")


if __name__ == "__main__":
    main()
