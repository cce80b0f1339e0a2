# truth: gc_pauses
# about: after every step the program has Python's collector go through the whole opening book, some hundred thousand objects that will all stay
# cure: --tidy-every 25
# whatif: gc=25
# needs: torch numpy
"""Value network for opening positions; the book is a tree of moves kept in memory."""
import argparse
import gc
import json
import os
import shutil
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, RandomSampler

PLANES = 96


def print_book(path, games, depth, seed):
    rng = np.random.default_rng(seed)
    moves = (rng.random((games, depth)) ** 2 * 20).astype(int)
    results = rng.integers(-1, 2, games)
    with open(path, "w") as out:
        for game, result in zip(moves.tolist(), results.tolist()):
            out.write(json.dumps({"moves": game, "result": result}) + "\n")


class Position:
    def __init__(self, parent, move):
        self.parent = parent
        self.move = move
        self.replies = {}
        self.results = [0, 0, 0]

    def reply(self, move):
        if move not in self.replies:
            self.replies[move] = Position(self, move)
        return self.replies[move]

    def value(self):
        lost, drawn, won = self.results
        return (won - lost) / (lost + drawn + won)


class Book(Dataset):
    def __init__(self, path, seed):
        self.start = Position(None, 0)
        self.positions = []
        with open(path) as lines:
            for line in lines:
                self.enter(json.loads(line))
        self.codes = np.random.default_rng(seed).normal(size=(64, PLANES)).astype(np.float32)

    def enter(self, game):
        here = self.start
        for move in game["moves"]:
            known = move in here.replies
            here = here.reply(move)
            here.results[game["result"] + 1] += 1
            if not known:
                self.positions.append(here)

    def __len__(self):
        return len(self.positions)

    def __getitem__(self, index):
        here = self.positions[index]
        value = here.value()
        planes = np.zeros(PLANES, dtype=np.float32)
        ply = 1
        while here.parent is not None and ply < 8:
            planes += self.codes[(here.move + ply) % 64]
            here, ply = here.parent, ply + 1
        return torch.from_numpy(planes), np.float32(value)


def build_net(width):
    return nn.Sequential(nn.Linear(PLANES, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                         nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1), nn.Tanh())


def tidy_up():
    """Somebody once ran out of memory here."""
    gc.collect()


def train(net, loader, options):
    optimizer = torch.optim.Adam(net.parameters(), lr=options.lr)
    step = 0
    for planes, value in loader:
        step += 1
        loss = nn.functional.mse_loss(net(planes).squeeze(1), value)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % options.tidy_every == 0:
            tidy_up()
        if step % 40 == 0:
            print(f"step {step}: {loss.item():.4f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--games", type=int, default=6000)
    parser.add_argument("--depth", type=int, default=12)
    parser.add_argument("--steps", type=int, default=125)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--tidy-every", type=int, default=1)
    parser.add_argument("--seed", type=int, default=64)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    folder = tempfile.mkdtemp(prefix="chess_")
    try:
        path = os.path.join(folder, "games.jsonl")
        print_book(path, options.games, options.depth, options.seed)
        book = Book(path, options.seed)
        print(f"{len(book)} positions")
        picks = RandomSampler(book, replacement=True, num_samples=options.steps * options.batch)
        train(build_net(options.width), DataLoader(book, batch_size=options.batch, sampler=picks), options)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
