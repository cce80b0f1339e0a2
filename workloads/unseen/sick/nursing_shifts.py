# truth: evaluation_heavy
# about: after every ten updates the model is run over all the held-out wards and scored, which takes longer than the ten updates; once in a hundred updates would do
# cure: --check-every 100
# whatif: evaluation=10
# gain: run
# env: OMP_NUM_THREADS=1
# needs: torch numpy
"""Will a shift be short of nurses? A GRU over the last four weeks of a ward's roster."""
import argparse
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn


@dataclass
class Rosters:
    weeks: torch.Tensor
    short: torch.Tensor

    def __len__(self):
        return len(self.short)

    def minibatches(self, size, generator=None):
        order = torch.arange(len(self)) if generator is None else torch.randperm(len(self), generator=generator)
        for part in order.split(size):
            yield self.weeks[part], self.short[part]


def make_rosters(wards, rng):
    shifts, facts = 28, 18
    weeks = rng.normal(size=(wards, shifts, facts)).astype(np.float32)
    strain = weeks[:, -7:, 0].mean(1) * 2 + weeks[:, :, 3].mean(1) * 3 - weeks[:, -1, 5]
    short = (strain + 0.3 * rng.normal(size=wards) > 0.4).astype(np.float32)
    return Rosters(torch.from_numpy(weeks), torch.from_numpy(short))


class ShiftModel(nn.Module):
    def __init__(self, facts=18, hidden=64):
        super().__init__()
        self.gru = nn.GRU(facts, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, weeks):
        _, last = self.gru(weeks)
        return self.head(last[0]).squeeze(-1)


def auc(scores, truth):
    ranks = np.empty(len(scores))
    ranks[np.argsort(scores)] = np.arange(1, len(scores) + 1)
    positives = truth.sum()
    return (ranks[truth > 0].sum() - positives * (positives + 1) / 2) / (positives * (len(truth) - positives))


@torch.no_grad()
def validate(model, held_out):
    model.eval()
    scores = torch.cat([model(weeks) for weeks, _ in held_out.minibatches(256)])
    model.train()
    return auc(scores.numpy(), held_out.short.numpy())


def fit(model, rosters, held_out, updates, check_every):
    optimizer = torch.optim.NAdam(model.parameters(), lr=2e-3)
    criterion = nn.BCEWithLogitsLoss()
    shuffle = torch.Generator().manual_seed(77)
    update, best = 0, 0.0
    while update < updates:
        for weeks, short in rosters.minibatches(96, shuffle):
            optimizer.zero_grad()
            criterion(model(weeks), short).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            update += 1
            if update % check_every == 0:
                best = max(best, validate(model, held_out))
            if update % 100 == 0:
                print(f"update {update}: best auc {best:.3f}")
            if update == updates:
                return


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=300)
    parser.add_argument("--check-every", type=int, default=10)
    options = parser.parse_args()
    torch.manual_seed(31)
    rng = np.random.default_rng(31)
    fit(ShiftModel(), make_rosters(6000, rng), make_rosters(6400, rng), options.updates, options.check_every)
