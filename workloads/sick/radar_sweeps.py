#!/usr/bin/env python3
# truth: preprocessing_bound
# about: every radar sweep is brought from rays to a map anew, and hypot, arctan2 and the weights of the interpolation are
# about: computed again for every tilt of every sample although they never change; the network would wait even if all cores did it
# also: data_loading_bound
# cure: --tables
# whatif: transform=8
# needs: torch numpy
"""Hail or not: a small convolutional network over weather radar volumes of three tilts."""
import argparse
import os
import shutil
import tempfile
import time

import numpy as np
import torch
from torch import nn

RAYS, GATES, SIDE = 180, 96, 112
TILTS = (0.5, 2.4, 6.0)


def record_volumes(folder, count):
    """The archive: one .npy with (volume, tilt, ray, gate) in tenths of dBZ."""
    rng = np.random.default_rng(11)
    volumes = np.zeros((count, len(TILTS), RAYS, GATES), np.int16)
    ray = np.arange(RAYS)[:, None]
    gate = np.arange(GATES)[None, :]
    labels = np.zeros(count, np.int64)
    for i in range(count):
        labels[i] = rng.integers(2)
        for _ in range(3):
            r0, g0 = rng.integers(RAYS), rng.integers(10, GATES - 10)
            width = rng.uniform(3, 6) if labels[i] else rng.uniform(7, 14)
            off = (ray - r0 + RAYS // 2) % RAYS - RAYS // 2
            cell = np.exp(-(off ** 2 + (gate - g0) ** 2) / (2 * width ** 2))
            for t in range(len(TILTS)):
                volumes[i, t] += (cell * (550 - 80 * t)).astype(np.int16)
    path = os.path.join(folder, "volumes.npy")
    np.save(path, volumes)
    return path, labels


def geometry(elevation):
    """Where each pixel of the map lies in the sweep: four neighbours and their weights."""
    axis = np.linspace(-1.0, 1.0, SIDE)
    x, y = np.meshgrid(axis, axis)
    slant = np.hypot(x, y) * (GATES - 1) / np.cos(np.deg2rad(elevation))
    height = slant * np.sin(np.deg2rad(elevation)) + slant ** 2 / (2 * 4.0 / 3.0 * 6371.0)
    slant = np.sqrt(np.maximum(slant ** 2 - (height * 0.1) ** 2, 0.0))
    bearing = np.mod(np.arctan2(x, -y), 2 * np.pi) * RAYS / (2 * np.pi)
    inside = slant < GATES - 1.001
    slant = np.where(inside, slant, 0.0)
    g = np.floor(slant).astype(np.int64)
    r = np.floor(bearing).astype(np.int64) % RAYS
    fg = slant - g
    fr = bearing - np.floor(bearing)
    r1 = (r + 1) % RAYS
    index = np.stack([r * GATES + g, r * GATES + g + 1, r1 * GATES + g, r1 * GATES + g + 1])
    weight = np.stack([(1 - fr) * (1 - fg), (1 - fr) * fg, fr * (1 - fg), fr * fg]) * inside
    return index, weight.astype(np.float32)


class Gridder:
    def __init__(self, tables):
        self.tables = [geometry(e) for e in TILTS] if tables else None

    def __call__(self, volume, heading):
        """One volume as (tilt, SIDE, SIDE), turned by a random heading of whole rays."""
        out = np.empty((len(TILTS), SIDE, SIDE), np.float32)
        for t, elevation in enumerate(TILTS):
            index, weight = self.tables[t] if self.tables else geometry(elevation)
            sweep = np.roll(volume[t], heading, axis=0).ravel().astype(np.float32) / 600.0
            np.einsum("kij,kij->ij", sweep[index], weight, out=out[t])
        return out


def batches(volumes, labels, gridder, size, count, rng):
    order = np.empty(0, np.int64)
    for _ in range(count):
        if len(order) < size:
            order = rng.permutation(len(labels))
        pick, order = order[:size], order[size:]
        maps = np.stack([gridder(volumes[i], int(rng.integers(RAYS))) for i in pick])
        yield torch.from_numpy(maps), torch.from_numpy(labels[pick])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=230)
    ap.add_argument("--batch", type=int, default=10)
    ap.add_argument("--tables", action="store_true", help="work out the geometry once")
    args = ap.parse_args()
    torch.manual_seed(5)
    rng = np.random.default_rng(5)
    folder = tempfile.mkdtemp(prefix="radar")
    try:
        path, labels = record_volumes(folder, 160)
        volumes = np.load(path)
        net = nn.Sequential(
            nn.Conv2d(len(TILTS), 8, 5, stride=4, padding=2), nn.ReLU(),
            nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ReLU(),
            nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(256, 2))
        opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
        gridder = Gridder(args.tables)
        begin, total = time.perf_counter(), 0.0
        for maps, truth in batches(volumes, labels, gridder, args.batch, args.steps, rng):
            opt.zero_grad()
            loss = nn.functional.cross_entropy(net(maps), truth)
            loss.backward()
            opt.step()
            total += float(loss.detach())
        took = time.perf_counter() - begin
        print(f"mean loss {total / args.steps:.3f}; {args.steps} steps, {1e3 * took / args.steps:.1f} ms each, {took:.2f} s")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
