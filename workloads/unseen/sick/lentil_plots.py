# truth: batch_too_small
# about: two plots a step, so that the fixed costs of some two hundred calls into torch are nearly all of each step
# also: launch_bound optimizer_bound
# gain: run
# cure: cured/lentil_plots.py
# whatif: batch=24
# needs: torch numpy
"""Lentil yield per field plot from soil, weather and variety: a residual MLP with embeddings."""
import numpy as np
import torch
from torch import nn

PLOTS = 4800
VARIETIES, SITES = 30, 18
BATCH = 2


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.up, self.down = nn.Linear(d, 2 * d), nn.Linear(2 * d, d)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class YieldModel(nn.Module):
    def __init__(self, d=40):
        super().__init__()
        self.variety, self.site = nn.Embedding(VARIETIES, 8), nn.Embedding(SITES, 8)
        self.first = nn.Linear(16 + 14, d)
        self.blocks = nn.Sequential(*[Block(d) for _ in range(4)])
        self.last = nn.Linear(d, 1)

    def forward(self, variety, site, soil):
        x = torch.cat([self.variety(variety), self.site(site), soil], 1)
        return self.last(self.blocks(self.first(x))).squeeze(1)


def field_book(seed):
    rng = np.random.default_rng(seed)
    variety = rng.integers(0, VARIETIES, PLOTS)
    site = rng.integers(0, SITES, PLOTS)
    soil = rng.normal(size=(PLOTS, 14)).astype(np.float32)
    tonnes = 1.4 + 0.2 * np.sin(variety) + 0.3 * soil[:, 0] * soil[:, 1] + 0.1 * np.cos(site)
    return [torch.from_numpy(a) for a in (variety, site, soil, tonnes.astype(np.float32))]


torch.manual_seed(21)
variety, site, soil, tonnes = field_book(21)
model = YieldModel()
opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.8)
total, n = 0.0, 0
for season in range(4):
    for rows in torch.randperm(PLOTS).split(BATCH):
        opt.zero_grad()
        guess = model(variety[rows], site[rows], soil[rows])
        loss = nn.functional.huber_loss(guess, tonnes[rows])
        loss.backward()
        opt.step()
        total, n = total + loss.item(), n + 1
    print(f"season {season}: {n} steps, huber {total / n:.4f}")
