#!/usr/bin/env python3
# truth: evaluation_heavy
# about: after every 5 steps the forecaster is tested on all held-out roofs, rolled forward hour by hour, and that takes several times as long as the steps between; cured, it is tested every 50 steps
# cure: --test-every 50
# whatif: evaluation=10
# gain: run
# needs: torch
"""Tomorrow's output of solar panels on roofs, hour by hour, by a recurrent network."""
import argparse
import math
import time

import torch
from torch import nn

DAY = 24


def roofs(count, days, seed):
    g = torch.Generator().manual_seed(seed)
    hour = torch.arange(days * DAY) % DAY
    sun = torch.clamp(torch.sin((hour - 6) / 12 * math.pi), min=0)
    cloud = torch.rand(count, days, generator=g).repeat_interleave(DAY, 1)
    size = 0.5 + torch.rand(count, 1, generator=g)
    power = size * sun * (1 - 0.7 * cloud) + 0.02 * torch.randn(count, days * DAY, generator=g)
    return torch.stack([power, cloud, (hour / DAY).expand(count, -1)], 2)


class Forecaster(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.cell = nn.GRU(3, width, batch_first=True)
        self.out = nn.Linear(width, 1)

    def forward(self, seen, state=None):
        hidden, state = self.cell(seen, state)
        return self.out(hidden).squeeze(2), state


class Trainer:
    def __init__(self, args):
        torch.manual_seed(2)
        self.args = args
        self.train_set, self.held_out = roofs(400, 8, 1), roofs(448, 6, 2)
        self.model = Forecaster()
        self.optimizer = torch.optim.RMSprop(self.model.parameters(), lr=1e-3)
        self.best = float("inf")
        self.testing = 0.0

    def batch(self):
        rows = torch.randint(0, len(self.train_set), (48,))
        start = int(torch.randint(0, 6, (1,))) * DAY
        window = self.train_set[rows, start:start + 2 * DAY + 1]
        return window[:, :-1], window[:, 1:, 0]

    def fit_batch(self):
        self.model.train()
        seen, target = self.batch()
        loss = nn.functional.mse_loss(self.model(seen)[0], target)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    @torch.no_grad()
    def evaluate(self):
        """Two days seen, then a day of forecasts that feed on each other, from every midnight of the held-out week."""
        self.model.eval()
        wrong = []
        for midnight in range(2 * DAY, self.held_out.shape[1] - DAY + 1, DAY):
            guess, state = self.model(self.held_out[:, midnight - 2 * DAY:midnight])
            power = guess[:, -1]
            for hour in range(midnight, midnight + DAY):
                wrong.append((power - self.held_out[:, hour, 0]).abs().mean())
                given = torch.cat([power[:, None], self.held_out[:, hour, 1:]], 1)
                guess, state = self.model(given[:, None], state)
                power = guess[:, -1]
        return float(torch.stack(wrong).mean())

    def run(self):
        begin = time.perf_counter()
        for step in range(1, self.args.steps + 1):
            self.fit_batch()
            if step % self.args.test_every == 0:
                start = time.perf_counter()
                self.best = min(self.best, self.evaluate())
                self.testing += time.perf_counter() - start
        took = time.perf_counter() - begin
        print(f"best error {self.best:.4f}, {self.args.steps} steps, {took:.2f} s, "
              f"{1e3 * took / self.args.steps:.1f} ms a step, testing {self.testing:.2f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--test-every", type=int, default=5)
    Trainer(parser.parse_args()).run()
