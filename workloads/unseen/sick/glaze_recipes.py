# truth: fd_leak
# about: every batch goes to a scratch file made with tempfile.mkstemp, whose descriptor is never closed (the file is opened a second time by name), so the process holds two descriptors more after every step
# gain: none
# needs: torch numpy
"""Colour of fired glazes from their oxide recipes.

The kiln model of the pottery school reads fixed-width records from a file, so
oxide shares go through one on their way to the network, and its colours come
back the same way.
"""
import os
import struct
import tempfile

import numpy as np
import torch
import torch.nn as nn

OXIDES = ["SiO2", "Al2O3", "B2O3", "Na2O", "K2O", "CaO", "MgO", "ZnO", "Fe2O3", "CuO", "CoO", "TiO2"]
RECORD = struct.Struct(f"<{len(OXIDES)}f")
SCRATCH = tempfile.mkdtemp(prefix="glaze")


def to_file(rows):
    handle, path = tempfile.mkstemp(suffix=".rec", dir=SCRATCH)
    with open(path, "wb") as f:
        for row in rows:
            f.write(RECORD.pack(*row))
    return path


def from_file(path):
    with open(path, "rb") as f:
        raw = f.read()
    os.unlink(path)
    return np.frombuffer(raw, dtype="<f4").reshape(-1, len(OXIDES))


def through_kiln(rows):
    """Normalises to the flux unity formula the way the school's reader does."""
    unity = from_file(to_file(rows))
    flux = unity[:, 3:8].sum(1, keepdims=True)
    return from_file(to_file(unity / flux))


def fire(unity, rng):
    mix = np.linspace(-1, 1, len(OXIDES) * 3).reshape(len(OXIDES), 3)
    return np.tanh(unity @ mix + 0.02 * rng.normal(size=(len(unity), 3))).astype(np.float32)


class Colour(nn.Module):
    def __init__(self, width=896):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(len(OXIDES), width), nn.SiLU(),
                                 nn.Linear(width, width), nn.SiLU(),
                                 nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 3))

    def forward(self, x):
        return self.net(x)


if __name__ == "__main__":
    torch.manual_seed(4)
    rng = np.random.default_rng(4)
    model = Colour()
    opt = torch.optim.Adam(model.parameters(), lr=3e-4)
    for step in range(1, 361):
        recipes = rng.dirichlet(np.ones(len(OXIDES)), 128) + 0.01
        unity = through_kiln(recipes)
        colour = torch.from_numpy(fire(unity, rng))
        loss = nn.functional.l1_loss(model(torch.from_numpy(unity.copy()).clamp(max=10)), colour)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 60 == 0:
            print(f"{step}: colour error {loss.item():.4f}")
    os.rmdir(SCRATCH)
