"""Zooarchaeology: species of a bone fragment from the outline of its section (bend at several scales, reach, smoothing)."""
import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

POINTS, SPECIES = 360, 7
SCALES = (2, 3, 5, 7, 9, 12, 15, 19, 24, 30, 38, 48)


class Describe:
    """(POINTS, 2) coordinates -> (len(SCALES) + 2, POINTS) descriptors, after Kvamme's field manual."""

    def __init__(self, scales=SCALES, half=3):
        at = np.arange(POINTS)
        self.near = (at[:, None] + np.arange(-half, half + 1)) % POINTS
        self.before = np.stack([(at - s) % POINTS for s in scales])
        self.behind = np.stack([(at + s) % POINTS for s in scales])
        self.weight = np.float32(1 / (2 * half + 1))

    def __call__(self, outline):
        p = outline[self.near].sum(1) * self.weight
        x, y = np.ascontiguousarray(p[:, 0]), np.ascontiguousarray(p[:, 1])
        ux, uy = x - x[self.before], y - y[self.before]
        vx, vy = x[self.behind] - x, y[self.behind] - y
        rows = np.empty((len(self.before) + 2, len(x)), np.float32)
        rows[:-2] = np.arctan2(ux * vy - uy * vx, ux * vx + uy * vy)
        rows[-2] = np.hypot(x - x.mean(), y - y.mean())
        rows[-1] = np.hypot(x - np.roll(x, 1), y - np.roll(y, 1))
        return torch.from_numpy(rows)


class Fragments(Dataset):
    def __init__(self, file, count, transform):
        self.outlines = np.memmap(file, np.float32, "r", shape=(count, POINTS, 2))
        self.species = np.random.default_rng(8).integers(0, SPECIES, count)
        self.transform = transform

    def __len__(self):
        return len(self.species)

    def __getitem__(self, i):
        return self.transform(np.asarray(self.outlines[i])), int(self.species[i])


def draw_outlines(file, count):
    rng, species = np.random.default_rng(9), np.random.default_rng(8).integers(0, SPECIES, count)
    t = np.linspace(0, 2 * np.pi, POINTS, endpoint=False)
    radius = 1 + 0.2 * np.sin((species[:, None] + 2) * t + rng.uniform(0, 6.3, (count, 1))) + 0.01 * rng.normal(size=(count, POINTS))
    np.stack([radius * np.cos(t), radius * np.sin(t)], 2).astype(np.float32).tofile(file)


def build():
    return nn.Sequential(nn.Conv1d(len(SCALES) + 2, 24, 7, padding=3), nn.ReLU(), nn.MaxPool1d(2),
                         nn.Conv1d(24, 32, 5, padding=2), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(),
                         nn.Linear(32, SPECIES))


def run(args):
    torch.manual_seed(8)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="bones") as folder:
        file = Path(folder) / "outlines.f32"
        count = args.steps * args.batch
        draw_outlines(file, count)
        loader = DataLoader(Fragments(file, count, Describe()), args.batch, shuffle=True, num_workers=2)
        model = build()
        opt = torch.optim.AdamW(model.parameters(), 2e-3)
        began, cpu = time.perf_counter(), time.process_time()
        for step, (x, y) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            if step % 40 == 0:
                print(f"step {step:4d}  loss {loss.item():.3f}")
        took = time.perf_counter() - began
        print(f"{args.steps} steps, {1e3 * took / args.steps:.2f} ms each, own cpu {1e3 * (time.process_time() - cpu) / args.steps:.2f} ms")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=260)
    parser.add_argument("--batch", type=int, default=32)
    run(parser.parse_args())
