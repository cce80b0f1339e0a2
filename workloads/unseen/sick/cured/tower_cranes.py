# truth: none
# about: the same, all readings of a lift in one file
# env: OMP_NUM_THREADS=1
# needs: torch numpy
"""Warns of overload from what a tower crane's logger saw during a lift."""
import os
import shutil
import struct
import tempfile

import numpy as np
import torch
from torch import nn

READINGS = 60
FIELDS = 8            # load, radius, slew, trolley, hoist speed, wind, tilt x, tilt y
RECORD = struct.Struct(f"<{FIELDS}f")


def simulate(rng):
    load = rng.uniform(1, 9)
    reading = rng.normal(0, 0.3, (READINGS, FIELDS)).cumsum(0) * 0.2
    reading[:, 0] += load
    reading[:, 1] += rng.uniform(10, 50)
    return reading.astype(np.float32), float(load * reading[:, 1].max() > 180)


def write_lift(folder, readings):
    with open(folder + ".rec", "wb") as f:
        for row in readings:
            f.write(RECORD.pack(*row))


def read_lift(folder):
    with open(folder + ".rec", "rb", buffering=0) as f:
        raw = f.read()
    return np.frombuffer(raw, np.float32).reshape(-1, FIELDS)


class Watch(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.near = nn.Conv1d(FIELDS, hidden, 5, padding=2)
        self.far = nn.Conv1d(hidden, hidden, 5, padding=4, dilation=2)
        self.alarm = nn.Linear(hidden, 1)

    def forward(self, x):
        x = self.near(x.transpose(1, 2)).relu()
        x = self.far(x).relu()
        return self.alarm(x.amax(2)).squeeze(1)


def train(root, lifts=200, steps=300, batch=16):
    rng = np.random.default_rng(1971)
    overloaded = np.zeros(lifts, np.float32)
    for n in range(lifts):
        readings, overloaded[n] = simulate(rng)
        write_lift(os.path.join(root, f"lift{n:04d}"), readings)

    torch.manual_seed(1971)
    model = Watch()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.02)
    criterion = nn.BCEWithLogitsLoss()
    scale = torch.tensor([0.2, 0.03, 1, 1, 1, 1, 1, 1])
    average = None
    for step in range(steps):
        chosen = rng.choice(lifts, batch, replace=False)
        x = np.stack([read_lift(os.path.join(root, f"lift{n:04d}")) for n in chosen])
        loss = criterion(model(torch.from_numpy(x) * scale), torch.from_numpy(overloaded[chosen]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average = loss.item() if average is None else 0.98 * average + 0.02 * loss.item()
        if step % 100 == 99:
            print(f"step {step + 1:4d}  loss {average:.4f}")


folder = tempfile.mkdtemp(prefix="cranes")
try:
    train(folder)
finally:
    shutil.rmtree(folder)
