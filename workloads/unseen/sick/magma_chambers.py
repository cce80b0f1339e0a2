# truth: precision_unused
# about: the receiver functions come out of numpy as float64 and, after a dtype error, the default dtype was set to float64, so that the whole transformer trains in double precision
# cure: cured/magma_chambers.py
# needs: torch numpy
"""Depth of the magma chamber's roof from teleseismic receiver functions (patch transformer)."""
import io
import math

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_default_dtype(torch.float64)      # "expected scalar type Float but found Double"

SAMPLES, PATCH, STATIONS = 768, 16, 3


def receiver_functions(events, seed=79):
    """Synthetics: direct P, a conversion at the roof, one multiple, noise.  Returned as one .npy in memory."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 12, SAMPLES)
    depth = rng.uniform(3, 15, events)
    out = np.zeros((events, STATIONS, SAMPLES))
    for s in range(STATIONS):
        delay = depth * (0.11 + 0.02 * s)
        for k, amp in ((0, 1.0), (1, -0.45), (3, 0.2)):
            out[:, s] += amp * np.exp(-((t[None] - 1 - k * delay[:, None]) / 0.15) ** 2)
    out += rng.normal(0, 0.05, out.shape)
    store = io.BytesIO()
    np.savez(store, rf=out, depth=(depth - 9) / 3.5)
    store.seek(0)
    return np.load(store)


class Events(Dataset):
    def __init__(self, npz):
        self.rf, self.depth = npz["rf"], npz["depth"]

    def __len__(self):
        return len(self.depth)

    def __getitem__(self, i):
        return self.rf[i], self.depth[i]


class RoofFinder(nn.Module):
    def __init__(self, dim=256, heads=4, layers=2):
        super().__init__()
        self.patches = nn.Linear(STATIONS * PATCH, dim)
        n = SAMPLES // PATCH
        place = torch.arange(n)[:, None] * torch.exp(-math.log(1e3) * torch.arange(0, dim, 2) / dim)
        self.register_buffer("place", torch.cat([place.sin(), place.cos()], 1))
        block = nn.TransformerEncoderLayer(dim, heads, 4 * dim, dropout=0.0, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(block, layers)
        self.depth = nn.Linear(dim, 1)

    def forward(self, rf):
        b = rf.shape[0]
        x = rf.reshape(b, STATIONS, -1, PATCH).permute(0, 2, 1, 3).reshape(b, -1, STATIONS * PATCH)
        x = self.body(self.patches(x) + self.place)
        return self.depth(x.mean(1)).squeeze(1)


def fit(model, loader, epochs):
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
    plan = torch.optim.lr_scheduler.OneCycleLR(opt, 1e-3, total_steps=epochs * len(loader))
    for e in range(epochs):
        total = 0.0
        for rf, depth in loader:
            loss = nn.functional.mse_loss(model(rf), depth)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            plan.step()
            total += loss.item()
        print(f"epoch {e + 1}: misfit {3.5 * math.sqrt(total / len(loader)):.2f} km")


if __name__ == "__main__":
    torch.manual_seed(79)
    events = Events(receiver_functions(576))
    fit(RoofFinder(), DataLoader(events, batch_size=16, shuffle=True, drop_last=True), epochs=2)
