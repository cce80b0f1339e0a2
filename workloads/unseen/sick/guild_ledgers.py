# truth: gc_pauses
# about: the trainer calls gc.collect() after every step "to hold memory down", and each time the collector walks through the hundred thousand Python objects and more of the ledger
# cure: --tidy-every 25
# whatif: gc=25
# env: OMP_NUM_THREADS=1
# needs: torch numpy
"""Who was apprenticed to whom? Link prediction (DistMult) on the ledgers of medieval guilds.

The ledger stays in memory as it was read, one object per entry, because the
historians want to see the entries behind a prediction.
"""
import argparse
import gc

import numpy as np
import torch
from torch import nn

RELATIONS = ["apprentice of", "married to", "witness for", "debtor of", "lives beside"]


class Entry:
    def __init__(self, folio, subject, relation, target):
        self.folio = folio
        self.link = [subject, relation, target]
        self.notes = {"hand": "A" if folio % 3 else "B"}


class Ledger:
    def __init__(self, people, entries, seed):
        rng = np.random.default_rng(seed)
        trade = rng.integers(0, 12, people)
        self.people = people
        self.entries = []
        subject = rng.integers(0, people, entries)
        relation = rng.integers(0, len(RELATIONS), entries)
        shift = rng.integers(0, 40, entries)
        order = np.argsort(trade, kind="stable")
        place = np.empty(people, int)
        place[order] = np.arange(people)
        target = order[(place[subject] + relation * 7 + shift) % people]
        for n, (s, r, t) in enumerate(zip(subject.tolist(), relation.tolist(), target.tolist())):
            self.entries.append(Entry(n // 40, s, r, t))

    def links(self):
        return torch.tensor([entry.link for entry in self.entries])


class DistMult(nn.Module):
    def __init__(self, people, rank=96):
        super().__init__()
        self.person = nn.Embedding(people, rank)
        self.relation = nn.Embedding(len(RELATIONS), rank)
        nn.init.normal_(self.person.weight, std=0.2)

    def forward(self, subject, relation):
        return (self.person(subject) * self.relation(relation)) @ self.person.weight.T


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=160)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--tidy-every", type=int, default=1)
    args = parser.parse_args()

    torch.manual_seed(1390)
    ledger = Ledger(people=3000, entries=40_000, seed=1390)
    links = ledger.links()
    model = DistMult(ledger.people)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(1, args.steps + 1):
        rows = links[torch.randint(len(links), (args.batch,))]
        scores = model(rows[:, 0], rows[:, 1])
        loss = nn.functional.cross_entropy(scores, rows[:, 2])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % args.tidy_every == 0:
            gc.collect()
        if step % 40 == 0:
            print(f"{step:5d} {loss.item():.3f}")

    with torch.no_grad():
        best = int(model(torch.tensor([7]), torch.tensor([0])).argmax())
    proof = [e for e in ledger.entries if e.link[0] == 7 and e.link[2] == best]
    print(f"person 7 was perhaps {RELATIONS[0]} {best} ({len(proof)} entries say something of the two)")


if __name__ == "__main__":
    main()
