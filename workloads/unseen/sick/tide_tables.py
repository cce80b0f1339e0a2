# truth: evaluation_heavy
# about: the whole validation season is forecast again after every 5 training steps, which takes longer than the training itself
# cure: --check-every 50
# gain: run
# whatif: evaluation=10
# needs: torch
"""Forecasts the water level of a harbour six hours ahead from the last two days, with a GRU."""
import argparse
import math
import time

import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler

LOOK = 48
AHEAD = 6


class Windows(Dataset):
    """Windows of one long series; asked for a whole batch of starts at once."""

    def __init__(self, level):
        self.windows = level.unfold(0, LOOK + AHEAD, 1)

    def __len__(self):
        return len(self.windows)

    def __getitem__(self, starts):
        rows = self.windows[torch.as_tensor(starts)]
        return rows[:, :LOOK].unsqueeze(2), rows[:, LOOK:]


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.memory = nn.GRU(1, 48, batch_first=True)
        self.ahead = nn.Linear(48, AHEAD)

    def forward(self, past):
        states, _ = self.memory(past)
        return self.ahead(states[:, -1])


def harbour(hours):
    t = torch.arange(hours, dtype=torch.float32)
    tide = sum(a * torch.sin(2 * math.pi * t / p + f) for a, p, f in ((1.2, 12.42, 0.1), (0.5, 12.0, 1.3), (0.3, 25.82, 2.2)))
    weather = torch.randn(hours).cumsum(0)
    return tide + 0.02 * torch.tanh(weather / 20) + 0.05 * torch.randn(hours)


@torch.no_grad()
def validate(model, loader):
    model.eval()
    error, count = 0.0, 0
    for past, future in loader:
        error += (model(past) - future).abs().sum().item()
        count += future.numel()
    model.train()
    return error / count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--check-every", type=int, default=5)
    options = parser.parse_args()
    torch.manual_seed(31)

    level = harbour(8760 * 2)
    practice, unseen = Windows(level[:8760]), Windows(level[8760 + 2500:])
    training = DataLoader(practice, sampler=BatchSampler(RandomSampler(practice), 128, True), batch_size=None)
    checking = DataLoader(unseen, sampler=BatchSampler(range(len(unseen)), 256, False), batch_size=None)

    model = Forecaster()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    best = float("inf")
    step = 0
    began = time.perf_counter()
    while step < options.steps:
        for past, future in training:
            loss = nn.functional.smooth_l1_loss(model(past), future)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            step += 1
            if step % options.check_every == 0:
                best = min(best, validate(model, checking))
            if step == options.steps:
                break
    took = time.perf_counter() - began
    print(f"best error {best:.3f} m; {options.steps} steps, {1000 * took / options.steps:.2f} ms each, {took:.2f} s")


if __name__ == "__main__":
    main()
