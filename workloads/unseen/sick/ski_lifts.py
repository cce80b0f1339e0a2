# truth: batch_too_small
# about: the network of queues at ski lifts is trained with four queues a step, so nearly all of a step is the fixed cost of starting some hundred small operations; batches eight times as large take about as long each
# cure: --batch 32
# whatif: batch=8
# gain: run
# env: OMP_NUM_THREADS=1
# needs: torch numpy
"""Waiting time at ski lifts a quarter of an hour ahead."""
import argparse

import numpy as np
import torch
from torch import nn

HOURS, SENSORS = 16, 10

ap = argparse.ArgumentParser()
ap.add_argument("--batch", type=int, default=4)
ap.add_argument("--passes", type=int, default=6)
opt = ap.parse_args()

torch.manual_seed(12)
rng = np.random.default_rng(12)

queues = np.cumsum(rng.normal(0, 0.3, size=(4800, HOURS, SENSORS)), axis=1).astype(np.float32)
waits = (queues[:, -1, 0] + 0.5 * np.tanh(queues[:, -4, 1]) + 0.1 * rng.normal(size=4800)).astype(np.float32)
queues, waits = torch.from_numpy(queues), torch.from_numpy(waits)


class Gate(nn.Module):
    """One gated residual block over the sensors."""

    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.value = nn.Linear(width, width)
        self.gate = nn.Linear(width, width)

    def forward(self, x):
        h = self.norm(x)
        return x + torch.sigmoid(self.gate(h)) * torch.tanh(self.value(h))


class Forecaster(nn.Module):
    def __init__(self, width=24, blocks=5):
        super().__init__()
        self.embed = nn.Linear(HOURS * SENSORS, width)
        self.blocks = nn.ModuleList(Gate(width) for _ in range(blocks))
        self.read = nn.Linear(width, 1)

    def forward(self, queue):
        x = self.embed(queue.flatten(1))
        for block in self.blocks:
            x = block(x)
        return self.read(x).squeeze(1)


model = Forecaster()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, nesterov=True)

for turn in range(opt.passes):
    errors = []
    order = torch.randperm(len(queues))
    for start in range(0, len(order), opt.batch):
        rows = order[start:start + opt.batch]
        guess = model(queues[rows])
        loss = nn.functional.l1_loss(guess, waits[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        errors.append(loss.detach())
    print(f"pass {turn + 1}: mean error {torch.stack(errors).mean():.3f}")
