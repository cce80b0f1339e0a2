# truth: none
# about: healthy: policy gradient through a simulated market, everything is a few large tensor operations on thousands of paths, no data set at all
# env: OPENBLAS_NUM_THREADS=2
# needs: torch
"""How to mix stocks and bonds over twenty years of saving: a policy trained through the simulated market."""
import argparse

import torch
from torch import nn

YEARS, PATHS = 20, 1024


class Policy(nn.Module):
    def __init__(self, width=384):
        super().__init__()
        self.enter = nn.Linear(4, width)
        self.deep = nn.Linear(width, width)
        self.mix = nn.Linear(width, 3)

    def forward(self, state):
        h = torch.relu(self.enter(state))
        return torch.softmax(self.mix(torch.relu(self.deep(h))), 1)


def life(policy, g):
    """log wealth at the end of each path"""
    wealth = torch.ones(PATHS)
    rate = torch.full((PATHS,), 0.02)
    mood = torch.zeros(PATHS)
    for year in range(YEARS):
        shock = torch.randn(PATHS, 2, generator=g)
        share = policy(torch.stack([wealth.log(), rate * 20, mood, torch.full((PATHS,), year / YEARS)], 1))
        gains = torch.stack([0.06 + 0.18 * shock[:, 0], rate - 0.05 * shock[:, 1], torch.full((PATHS,), 0.01)], 1)
        wealth = wealth * (1 + (share * gains).sum(1)).clamp(min=0.05) + 0.1
        rate = rate + 0.1 * (0.025 - rate) + 0.003 * shock[:, 1]
        mood = 0.8 * mood + 0.2 * shock[:, 0]
    return wealth.log()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    steps = parser.parse_args().steps
    torch.set_num_threads(2)
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(1)
    policy = Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    for step in range(1, steps + 1):
        end = life(policy, g)
        worth = end.mean() - 0.5 * end.var()
        optimizer.zero_grad()
        (-worth).backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"{step:4d} certainty {worth.item():.4f}")


if __name__ == "__main__":
    main()
