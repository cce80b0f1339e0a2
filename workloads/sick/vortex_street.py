# truth: precision_unused
# about: the solver saved its velocity fields as float64, and the net was made double to match them; float32 would do for learning them and is much faster
# cure: --dtype float32
# advice: float32
# needs: torch numpy
"""The wake behind a cylinder a moment later: a patch mixer steps the velocity field forward."""
import argparse
import pathlib
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def simulate(folder, runs=6, frames=60, h=32, w=64):
    """Vortices carried along by the stream, as the solver would have written them."""
    y, x = np.mgrid[0:h, 0:w].astype(float)
    for run in range(runs):
        rng = np.random.default_rng(run)
        speed, gap = rng.uniform(0.6, 1.4), rng.uniform(9, 14)
        fields = np.empty((frames, 2, h, w))
        for f in range(frames):
            u, v = np.full((h, w), speed), np.zeros((h, w))
            for k in range(-6, 8):
                cx, cy, turn = k * gap + speed * f % (2 * gap), h / 2 + (3 if k % 2 else -3), (1 if k % 2 else -1)
                r2 = (x - cx) ** 2 + (y - cy) ** 2 + 2.0
                u -= turn * (y - cy) / r2
                v += turn * (x - cx) / r2
            fields[f] = u, v
        np.save(folder / ("run%02d.npy" % run), fields)


class Wake(Dataset):
    def __init__(self, folder):
        self.runs = [np.load(p) for p in sorted(folder.glob("run*.npy"))]
        self.pairs = [(r, f) for r, run in enumerate(self.runs) for f in range(len(run) - 1)]

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, i):
        r, f = self.pairs[i]
        return self.runs[r][f], self.runs[r][f + 1]


class Mixer(nn.Module):
    """Mixes the patches of a field, then the channels of each patch."""

    def __init__(self, patches, ch):
        super().__init__()
        self.norm_a, self.norm_b = nn.LayerNorm(ch), nn.LayerNorm(ch)
        self.across = nn.Linear(patches, patches)
        self.within = nn.Sequential(nn.Linear(ch, 2 * ch), nn.ReLU(), nn.Linear(2 * ch, ch))

    def forward(self, x):
        x = x + self.across(self.norm_a(x).transpose(1, 2)).transpose(1, 2)
        return x + self.within(self.norm_b(x))


class WakeNet(nn.Module):
    def __init__(self, h=32, w=64, patch=4, ch=192, depth=3):
        super().__init__()
        self.h, self.w, self.p = h // patch, w // patch, patch
        self.enter = nn.Linear(2 * patch * patch, ch)
        self.blocks = nn.Sequential(*[Mixer(self.h * self.w, ch) for _ in range(depth)])
        self.leave = nn.Linear(ch, 2 * patch * patch)

    def forward(self, field):
        n = len(field)
        x = field.reshape(n, 2, self.h, self.p, self.w, self.p).permute(0, 2, 4, 1, 3, 5).reshape(n, self.h * self.w, -1)
        x = self.leave(self.blocks(self.enter(x)))
        return x.reshape(n, self.h, self.w, 2, self.p, self.p).permute(0, 3, 1, 4, 2, 5).reshape(field.shape)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--dtype", choices=["float64", "float32"], default="float64")
    ap.add_argument("--epochs", type=int, default=3)
    args = ap.parse_args()
    torch.manual_seed(3)
    torch.set_num_threads(2)
    dtype = getattr(torch, args.dtype)
    with tempfile.TemporaryDirectory() as tmp:
        simulate(pathlib.Path(tmp))
        loader = DataLoader(Wake(pathlib.Path(tmp)), batch_size=12, shuffle=True, drop_last=True)
        net = WakeNet().to(dtype)
        opt = torch.optim.Adam(net.parameters(), 1e-3)
        steps, began = 0, time.perf_counter()
        for epoch in range(args.epochs):
            for now, soon in loader:
                now, soon = now.to(dtype), soon.to(dtype)
                loss = nn.functional.mse_loss(now + net(now), soon)
                opt.zero_grad()
                loss.backward()
                opt.step()
                steps += 1
            print("epoch %d: %.5f" % (epoch, loss.item()))
        print("%d steps, %.2f ms per step" % (steps, 1e3 * (time.perf_counter() - began) / steps))


if __name__ == "__main__":
    main()
