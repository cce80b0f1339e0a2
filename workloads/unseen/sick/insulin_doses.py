# truth: evaluation_heavy
# about: after every fourth step the model is asked for all stays of the held-out ward, though its error hardly moves in so few steps; the evaluations take several times as long as the training
# whatif: evaluation=10
# cure: --check 40
# gain: run
# env: OPENBLAS_NUM_THREADS=1
# needs: torch
"""Glucose of the next hours from the past day of a patient and the planned insulin."""
import argparse

import torch
from torch import nn


class Forecaster(nn.Module):
    def __init__(self, hidden=72):
        super().__init__()
        self.past = nn.GRU(4, hidden, batch_first=True)
        self.plan = nn.Linear(6, hidden)
        self.out = nn.Linear(hidden, 6)

    def forward(self, day, plan):
        _, state = self.past(day)
        return self.out(torch.tanh(state[0] + self.plan(plan)))


def ward(patients, seed):
    g = torch.Generator().manual_seed(seed)
    day = torch.randn(patients, 48, 4, generator=g).cumsum(1) / 7
    plan = torch.rand(patients, 6, generator=g)
    glucose = day[:, -1, :1] + day[:, -6:, 1] * 0.3 - plan.cumsum(1) * 0.4
    return day, plan, glucose


class Study:
    def __init__(self, check):
        self.check = check
        self.model = Forecaster()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=3e-3)
        self.train_ward = ward(4000, 1)
        self.other_ward = ward(1800, 2)
        self.best = float("inf")

    def learn(self, rows):
        self.model.train()
        day, plan, glucose = (part[rows] for part in self.train_ward)
        loss = nn.functional.huber_loss(self.model(day, plan), glucose)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        error = count = 0
        for day, plan, glucose in zip(*(part.split(200) for part in self.other_ward)):
            error += (self.model(day, plan) - glucose).abs().sum().item()
            count += glucose.numel()
        return error / count

    def run(self, steps):
        order = torch.Generator().manual_seed(3)
        for step in range(1, steps + 1):
            self.learn(torch.randint(0, 4000, (64,), generator=order))
            if step % self.check == 0:
                self.best = min(self.best, self.evaluate())
        print(f"best mean error {self.best:.4f} mmol/l")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", type=int, default=4)
    parser.add_argument("--steps", type=int, default=200)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    Study(args.check).run(args.steps)
