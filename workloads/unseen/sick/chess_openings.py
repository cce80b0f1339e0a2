# truth: gc_pauses
# about: the opening book is a tree of several hundred thousand Python objects, and gc.collect() after every batch walks all of them
# cure: cured/chess_openings.py
# whatif: gc=40
# needs: torch numpy
"""Next-move model for the opening: an LSTM reads a line of the book and predicts the master's reply."""
import gc
import random

import torch
from torch import nn

MOVES = 1200          # distinct moves in the notation
DEPTH = 16
GAMES = 6000
BATCH, STEPS = 64, 80
TIDY_EVERY = 1        # batches


class Position:
    """A node of the book: what was played from here, how often, with what result."""

    def __init__(self, parent=None, move=0):
        self.parent = parent
        self.move = move
        self.replies = {}
        self.results = [0, 0, 0]

    def play(self, move):
        nxt = self.replies.get(move)
        if nxt is None:
            nxt = self.replies[move] = Position(self, move)
        return nxt


def read_games(rng):
    """Games whose first moves crowd on few main lines, as in life."""
    root = Position()
    for _ in range(GAMES):
        here, taste = root, rng.randrange(7)
        for ply in range(DEPTH):
            wide = 2 + ply * ply
            move = (taste * 31 + ply * 67 + int(wide * rng.random() ** 2)) % MOVES
            here = here.play(move)
            here.results[rng.randrange(3)] += 1
    return root


def random_line(root, rng):
    line, here = [], root
    while here.replies and len(line) < DEPTH:
        here = rng.choice(list(here.replies.values()))
        line.append(here.move)
    return line


def draw(root, rng):
    rows = []
    while len(rows) < BATCH:
        line = random_line(root, rng)
        if len(line) == DEPTH:
            rows.append(line)
    t = torch.tensor(rows)
    return t[:, :-1], t[:, 1:]


class Opening(nn.Module):
    def __init__(self, dim=96, hidden=128):
        super().__init__()
        self.embed = nn.Embedding(MOVES, dim)
        self.lstm = nn.LSTM(dim, hidden, batch_first=True)
        self.reply = nn.Linear(hidden, MOVES)

    def forward(self, line):
        return self.reply(self.lstm(self.embed(line))[0])


def tidy(done):
    """The laptop ran out of memory once; since then we clean up behind us."""
    if done % TIDY_EVERY == 0:
        gc.collect()


def main():
    rng = random.Random(64)
    torch.manual_seed(64)
    book = read_games(rng)
    net = Opening()
    opt = torch.optim.RMSprop(net.parameters(), lr=1e-3)
    mean = 0.0
    for done in range(1, STEPS + 1):
        line, reply = draw(book, rng)
        loss = nn.functional.cross_entropy(net(line).flatten(0, 1), reply.flatten())
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        opt.step()
        mean += loss.item()
        if done % 20 == 0:
            print(f"{done:4d} batches  nats per move {mean / 20:.3f}")
            mean = 0.0
        tidy(done)


if __name__ == "__main__":
    main()
