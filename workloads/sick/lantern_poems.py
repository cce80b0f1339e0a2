# truth: logging_stall
# about: a journal writes the norms and single weights of every layer as rows of a CSV file after each step, number by number, and flushes after each row
# cure: --journal-every 20
# whatif: logging=20
# needs: torch numpy
"""A small character model of poems, with a journal of how its weights move."""
import argparse
import csv
import os
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

WORDS = ("lantern river snow moon crane willow night boat smoke autumn reed frost bell door rain hill "
         "pine wind gate cloud").split()


def write_poems(path, lines, seed):
    rng = np.random.default_rng(seed)
    with open(path, "w") as out:
        for _ in range(lines):
            out.write(" ".join(rng.choice(WORDS, size=int(rng.integers(4, 8)))) + "\n")


class Poems(Dataset):
    """Windows of characters, each with the same window one character later."""

    def __init__(self, path, window):
        with open(path) as source:
            text = source.read()
        self.letters = sorted(set(text))
        places = {letter: number for number, letter in enumerate(self.letters)}
        self.text = torch.tensor([places[letter] for letter in text])
        self.window = window

    def __len__(self):
        return (len(self.text) - 1) // self.window

    def __getitem__(self, number):
        begin = number * self.window
        piece = self.text[begin:begin + self.window + 1]
        return piece[:-1], piece[1:]


class Poet(nn.Module):
    def __init__(self, letters, width):
        super().__init__()
        self.embed = nn.Embedding(letters, width)
        self.layers = nn.ModuleList([nn.Conv1d(width, width, 3) for _ in range(4)])
        self.out = nn.Linear(width, letters)

    def forward(self, letters):
        x = self.embed(letters).transpose(1, 2)
        for layer in self.layers:
            x = x + torch.relu(layer(nn.functional.pad(x, (2, 0))))
        return self.out(x.transpose(1, 2))


class Journal:
    """Rows: step, loss, name, norm, norm of the gradient, the first weights."""

    def __init__(self, path, weights):
        self.file = open(path, "w", newline="")
        self.rows = csv.writer(self.file)
        self.weights = weights

    def row(self, step, loss, name, weight):
        first = weight.detach().flatten()[:self.weights]
        slope = weight.grad.flatten()[:self.weights]
        cells = [f"{value.item():.6e}" for value in first] + [f"{value.item():.3e}" for value in slope]
        self.rows.writerow([step, f"{loss:.6f}", name, f"{weight.norm().item():.6f}", f"{weight.grad.norm().item():.6f}"]
                           + cells)
        self.file.flush()

    def note(self, step, loss, model):
        for name, weight in model.named_parameters():
            self.row(step, loss, name, weight)

    def close(self):
        self.file.close()


def train(model, loader, journal, args):
    optimizer = torch.optim.Adam(model.parameters(), lr=args.rate)
    step = 0
    for epoch in range(args.epochs):
        for letters, following in loader:
            scores = model(letters)
            loss = nn.functional.cross_entropy(scores.flatten(0, 1), following.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % args.journal_every == 0:
                journal.note(step, loss.item(), model)
            step += 1
        print(f"epoch {epoch}, {step} steps, loss {loss.item():.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=2000)
    parser.add_argument("--window", type=int, default=64)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--journal-every", type=int, default=1)
    parser.add_argument("--journal-weights", type=int, default=600)
    args = parser.parse_args()

    torch.manual_seed(17)
    with tempfile.TemporaryDirectory(prefix="poems") as folder:
        path = os.path.join(folder, "poems.txt")
        write_poems(path, args.lines, seed=17)
        poems = Poems(path, args.window)
        loader = DataLoader(poems, batch_size=args.batch, shuffle=True, drop_last=True)
        journal = Journal(os.path.join(folder, "journal.csv"), args.journal_weights)
        train(Poet(len(poems.letters), args.width), loader, journal, args)
        journal.close()


if __name__ == "__main__":
    main()
