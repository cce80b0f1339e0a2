# truth: precision_unused
# about: numpy made the tracks in float64, the network was turned to double to fit them, and so all its matrix products are computed in double precision, which nothing here needs
# cure: cured/cloud_chamber.py
# env: OMP_NUM_THREADS=1
# needs: torch numpy
"""Momentum of charged particles from curved tracks in a cloud chamber."""
import numpy as np
import torch
from torch import nn

torch.manual_seed(1932)
rng = np.random.default_rng(1932)

HITS = 96
BATCH = 160
STEPS = 200


def tracks(count):
    momentum = rng.uniform(0.2, 2.0, count)
    charge = rng.choice([-1.0, 1.0], count)
    path = np.linspace(0, 1, HITS)
    bend = 0.3 * charge / momentum
    x = path[None, :] + rng.normal(0, 0.004, (count, HITS))
    y = 0.5 * bend[:, None] * path ** 2 + rng.normal(0, 0.004, (count, HITS))
    return np.concatenate([x, y], axis=1), bend


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Tracker(nn.Module):
    def __init__(self, width=320, depth=3):
        super().__init__()
        self.read = nn.Linear(2 * HITS, width)
        self.blocks = nn.Sequential(*[Residual(width) for _ in range(depth)])
        self.bend = nn.Linear(width, 1)

    def forward(self, hits):
        return self.bend(self.blocks(self.read(hits))).squeeze(-1)


hits, bend = tracks(BATCH * 50)
hits, bend = torch.from_numpy(hits), torch.from_numpy(bend)
model = Tracker().double()
optimizer = torch.optim.SGD(model.parameters(), lr=3e-3, momentum=0.9)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)

for step in range(STEPS):
    at = step % 50 * BATCH
    guess = model(hits[at:at + BATCH])
    loss = nn.functional.mse_loss(guess, bend[at:at + BATCH])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 50 == 0:
        print("step %d, bend off by %.4f" % (step, loss.item() ** 0.5))
