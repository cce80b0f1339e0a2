# truth: gc_pauses
# about: the loop calls gc.collect() after every step, and each time the collector goes through some hundred thousand linked objects of the lexicon, which are all still needed
# cure: --tidy 40
# whatif: gc=40
# needs: torch numpy
# Which inflection class a lemma belongs to, by the characters of two of its forms
import argparse
import gc
import random
import time

import torch
import torch.nn as nn

LETTERS = "abcdefghijklmnoprstuvyzäöü"
ENDINGS = [["", "a", "in", "un", "ilo"], ["s", "te", "ren", "mus", "li"], ["o", "ok", "ot", "ban", "ig"],
           ["us", "i", "um", "orum", "is"], ["e", "es", "em", "er", "ens"], ["ka", "ke", "ku", "koi", "kam"]]


class Form:
    def __init__(self, text, lemma):
        self.text = text
        self.lemma = lemma          # back to the lemma
        self.features = {"len": len(text), "ends": text[-2:]}
        self.neighbours = []


class Lemma:
    def __init__(self, stem, cls):
        self.stem = stem
        self.cls = cls
        self.forms = [Form(stem + e, self) for e in ENDINGS[cls]]
        for f in self.forms:
            f.neighbours = [g for g in self.forms if g is not f]


def make_lexicon(n, rnd):
    lexicon = []
    for _ in range(n):
        stem = "".join(rnd.choice(LETTERS) for _ in range(rnd.randint(3, 7)))
        lexicon.append(Lemma(stem, rnd.randrange(len(ENDINGS))))
    return lexicon


def encode(text, size=12):
    ids = [LETTERS.find(c) + 2 for c in text[:size]]
    return ids + [0] * (size - len(ids))


parser = argparse.ArgumentParser()
parser.add_argument("--tidy", type=int, default=1)
parser.add_argument("--steps", type=int, default=80)
parser.add_argument("--lemmas", type=int, default=22000)
args = parser.parse_args()

torch.manual_seed(8)
torch.set_num_threads(1)
rnd = random.Random(8)
gc.disable()
lexicon = make_lexicon(args.lemmas, rnd)
gc.enable()

embed = nn.Embedding(len(LETTERS) + 2, 48)
rnn = nn.GRU(48, 96, batch_first=True)
head = nn.Linear(2 * 96, len(ENDINGS))
params = list(embed.parameters()) + list(rnn.parameters()) + list(head.parameters())
optim = torch.optim.Adam(params, lr=3e-3)

start = time.perf_counter()
in_tidy = 0.0
for step in range(1, args.steps + 1):
    batch = rnd.choices(lexicon, k=192)
    pairs = [rnd.sample(lemma.forms, 2) for lemma in batch]
    left = torch.tensor([encode(a.text) for a, b in pairs])
    right = torch.tensor([encode(b.text) for a, b in pairs])
    target = torch.tensor([lemma.cls for lemma in batch])
    _, hl = rnn(embed(left))
    _, hr = rnn(embed(right))
    loss = nn.functional.cross_entropy(head(torch.cat([hl[0], hr[0]], 1)), target)
    optim.zero_grad()
    loss.backward()
    optim.step()
    if step % 20 == 0:
        print(f"{step}: {loss.item():.3f}")
    if step % args.tidy == 0:
        t = time.perf_counter()
        gc.collect()
        in_tidy += time.perf_counter() - t
took = time.perf_counter() - start
print(f"{1e3 * took / args.steps:.1f} ms a step ({1e3 * in_tidy / args.steps:.1f})")
