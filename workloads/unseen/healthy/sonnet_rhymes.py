# truth: none
# about: a GRU over letters of verse in equal windows, gradients gathered over four windows for each update, held-out lines and a checkpoint twice in the run: nothing to mend
# needs: torch numpy
"""Letter model of rhymed lines; windows of equal length cut from one long text."""
import os
import random
import tempfile

import torch
import torch.nn as nn

ENDINGS = ["ight", "ove", "ay", "ore", "ame", "ear"]
LETTERS = "\n abcdefghijklmnopqrstuvwxyz"
WINDOW, BATCH, GATHER, UPDATES = 64, 32, 4, 60


def compose(lines, seed):
    rnd = random.Random(seed)
    text = []
    for n in range(lines):
        words = ["".join(rnd.choice("aeiou") + rnd.choice("lmnrst") for _ in range(rnd.randint(1, 3)))
                 for _ in range(5)]
        text.append(" ".join(words) + " " + rnd.choice("bdlmnrs") + ENDINGS[n // 2 % len(ENDINGS)])
    place = {c: i for i, c in enumerate(LETTERS)}
    return torch.tensor([place[c] for c in "\n".join(text)])


class Poet(nn.Module):
    def __init__(self, width=192):
        super().__init__()
        self.letters = nn.Embedding(len(LETTERS), 64)
        self.memory = nn.GRU(64, width, batch_first=True)
        self.next = nn.Linear(width, len(LETTERS))

    def loss(self, window):
        h, _ = self.memory(self.letters(window[:, :-1]))
        return nn.functional.cross_entropy(self.next(h).flatten(0, 1), window[:, 1:].flatten())


def windows(text, gen):
    starts = torch.randint(0, len(text) - WINDOW - 1, (BATCH, 1), generator=gen)
    return text[starts + torch.arange(WINDOW + 1)]


@torch.no_grad()
def held_out(poet, text):
    gen = torch.Generator().manual_seed(0)
    return sum(poet.loss(windows(text, gen)).item() for _ in range(3)) / 3


def main():
    torch.manual_seed(14)
    gen = torch.Generator().manual_seed(15)
    train, test = compose(3000, 1), compose(300, 2)
    poet = Poet()
    opt = torch.optim.Adam(poet.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, UPDATES)
    with tempfile.TemporaryDirectory() as shelf:
        for update in range(1, UPDATES + 1):
            opt.zero_grad()
            for _ in range(GATHER):
                (poet.loss(windows(train, gen)) / GATHER).backward()
            nn.utils.clip_grad_norm_(poet.parameters(), 1.0)
            opt.step()
            schedule.step()
            if update % 30 == 0:
                print(f"update {update}: held out {held_out(poet, test):.3f}")
                torch.save(poet.state_dict(), os.path.join(shelf, "poet.pt"))


main()
