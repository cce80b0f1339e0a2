# truth: gil_contention
# about: a thread keeps going through the ledger in pure Python to refresh the house's word statistics; it holds the interpreter's lock for its whole turn, and the training thread waits for it after every operation; cured, the same statistics are made in a process of their own
# cure: --census process
# env: OMP_NUM_THREADS=1
# needs: torch
"""Reads the kind of a line in old tavern ledgers (ale, meat, lodging, wages, ...) from its letters."""
import argparse
import collections
import multiprocessing
import random
import threading

import torch
from torch import nn

KINDS = {
    "ale": ["ale", "beer", "small beer", "stout", "barrel", "firkin"],
    "meat": ["mutton", "beef", "pork pie", "tripe", "goose"],
    "lodging": ["bed", "stabling", "oats for horse", "candle", "hot water"],
    "wages": ["pot boy", "ostler", "cook", "maid", "quarter wage"],
    "debts": ["on the slate", "owed by", "part paid", "forgiven"],
}
LETTERS = " abcdefghijklmnopqrstuvwxyz0123456789"
LENGTH = 48


def ledger(lines, seed):
    rnd = random.Random(seed)
    people = ["".join(rnd.choices(LETTERS[1:27], k=rnd.randint(4, 9))) for _ in range(400)]
    rows = []
    for _ in range(lines):
        kind = rnd.randrange(len(KINDS))
        thing = rnd.choice(list(KINDS.values())[kind])
        rows.append((f"{rnd.choice(people)} {thing} {rnd.randint(1, 12)}s {rnd.randint(0, 11)}d", kind))
    return rows


def encode(rows):
    text = torch.zeros(len(rows), LENGTH, dtype=torch.long)
    for n, (line, _) in enumerate(rows):
        text[n, :len(line)] = torch.tensor([LETTERS.index(c) for c in line[:LENGTH]])
    return text, torch.tensor([kind for _, kind in rows])


def census(rows, stop, box):
    """Counts words and pairs of words over the whole ledger, again and again, for the reading room's screen."""
    while not stop.is_set():
        words, pairs = collections.Counter(), collections.Counter()
        for line, kind in rows:
            parts = line.split()
            for left, right in zip(parts, parts[1:]):
                pairs[left, right, kind] += 1
            for part in parts:
                words[part] += 1
            if stop.is_set():
                return
        box["common"] = words.most_common(20), pairs.most_common(20)


class Reader(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.letters = nn.Embedding(len(LETTERS), width)
        self.near = nn.Conv1d(width, 128, 5, padding=2)
        self.far = nn.Conv1d(128, 128, 5, padding=4, dilation=2)
        self.kind = nn.Linear(128, len(KINDS))

    def forward(self, text):
        x = self.letters(text).transpose(1, 2)
        x = torch.relu(self.near(x))
        x = torch.relu(self.far(x))
        return self.kind(x.amax(2))


def train(text, kinds, steps, batch):
    model = Reader()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for step in range(1, steps + 1):
        rows = torch.randint(len(text), (batch,))
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(text[rows]), kinds[rows])
        loss.backward()
        optimizer.step()
        if step % 30 == 0:
            print(f"{step:4d}  {loss.item():.4f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--census", choices=["thread", "process"], default="thread")
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--batch", type=int, default=64)
    args = parser.parse_args()
    torch.manual_seed(14)
    rows = ledger(8000, seed=14)
    if args.census == "thread":
        stop, box = threading.Event(), {}
        counting = threading.Thread(target=census, args=(rows, stop, box), daemon=True)
    else:
        manager = multiprocessing.Manager()
        stop, box = multiprocessing.Event(), manager.dict()
        counting = multiprocessing.Process(target=census, args=(rows, stop, box), daemon=True)
    counting.start()
    text, kinds = encode(rows)
    train(text, kinds, args.steps, args.batch)
    stop.set()
    counting.join()
    words, _ = box["common"]
    print("most common:", ", ".join(word for word, _ in words[:5]))


if __name__ == "__main__":
    main()
