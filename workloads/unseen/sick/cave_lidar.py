#!/usr/bin/env python3
# truth: preprocessing_bound
# about: the surface normals of every scan are found point by point in Python (a sort and an eigen-decomposition for each point); both workers keep both cores busy with it and the small network waits, so only a cheaper transform helps
# also: data_loading_bound
# cure: --normals batched
# whatif: transform=4
# needs: torch numpy
"""Rock, water, dripstone or clay? Patches of a cave survey, classified from points and normals."""
import argparse
import os
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

POINTS = 224
NEIGHBOURS = 12
KINDS = 4


def survey(path, patches):
    rng = np.random.default_rng(12)
    kinds = rng.integers(0, KINDS, patches)
    xy = rng.uniform(-1, 1, (patches, POINTS, 2))
    x, y = xy[..., 0], xy[..., 1]
    bend = rng.normal(1.0, 0.2, (patches, 1))
    shapes = np.stack([0.3 * bend * np.sin(4 * x) * np.cos(5 * y), 0.02 * bend * x,
                       bend * np.exp(-4 * (x * x + y * y)), 0.3 * bend * (x * x - y * y)])
    z = shapes[kinds, np.arange(patches)] + rng.normal(0, 0.03, x.shape)
    np.savez(path, cloud=np.concatenate([xy, z[..., None]], -1).astype(np.float32), kind=kinds)


def normals_single(cloud):
    found = np.empty_like(cloud)
    for i, point in enumerate(cloud):
        near = np.argsort(((cloud - point) ** 2).sum(1))[:NEIGHBOURS]
        patch = cloud[near] - cloud[near].mean(0)
        _, axes = np.linalg.eigh((patch[:, :, None] * patch[:, None, :]).sum(0))
        normal = axes[:, 0]
        found[i] = normal if normal[2] >= 0 else -normal
    return found


def normals_batched(cloud):
    apart = ((cloud[:, None, :] - cloud[None, :, :]) ** 2).sum(2)
    near = np.argpartition(apart, NEIGHBOURS, axis=1)[:, :NEIGHBOURS]
    patch = cloud[near]
    patch = patch - patch.mean(1, keepdims=True)
    _, axes = np.linalg.eigh(np.einsum("nki,nkj->nij", patch, patch))
    normal = axes[:, :, 0]
    return np.where(normal[:, 2:] >= 0, normal, -normal)


class Prepare:
    def __init__(self, normals):
        self.normals = normals

    def __call__(self, cloud):
        cloud = cloud - cloud.mean(0)
        cloud = cloud / np.abs(cloud).max()
        return torch.from_numpy(np.concatenate([cloud, self.normals(cloud)], 1).T.copy())


class Patches(IterableDataset):
    def __init__(self, path, transform):
        self.path, self.transform = path, transform

    def __iter__(self):
        info = get_worker_info()
        part, parts = (info.id, info.num_workers) if info else (0, 1)
        with np.load(self.path) as data:
            clouds, kinds = data["cloud"], data["kind"]
        for index in range(part, len(kinds), parts):
            yield self.transform(clouds[index]), int(kinds[index])


class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.each = nn.Sequential(nn.Conv1d(6, 48, 1), nn.BatchNorm1d(48), nn.ReLU(), nn.Conv1d(48, 96, 1), nn.ReLU())
        self.all = nn.Sequential(nn.Linear(96, 64), nn.ReLU(), nn.Linear(64, KINDS))

    def forward(self, x):
        return self.all(self.each(x).amax(2))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--normals", choices=("single", "batched"), default="single")
    parser.add_argument("--patches", type=int, default=1440)
    parser.add_argument("--time-transform", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(3)
    with tempfile.TemporaryDirectory(prefix="cave") as folder:
        path = os.path.join(folder, "survey.npz")
        survey(path, args.patches)
        transform = Prepare(normals_single if args.normals == "single" else normals_batched)
        if args.time_transform:
            with np.load(path) as data:
                clouds = data["cloud"][:60]
            begin = time.perf_counter()
            for cloud in clouds:
                transform(cloud)
            print(f"{1e3 * (time.perf_counter() - begin) / len(clouds):.2f} ms a patch")
            return
        loader = DataLoader(Patches(path, transform), batch_size=12, num_workers=2)
        model = PointNet()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
        right, steps, begin = 0, 0, time.perf_counter()
        for points, kind in loader:
            scores = model(points)
            loss = nn.functional.cross_entropy(scores, kind)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += int((scores.argmax(1) == kind).sum())
            steps += 1
        took = time.perf_counter() - begin
        print(f"{steps} steps, {100 * right / args.patches:.0f} % right, {took:.2f} s, {1e3 * took / steps:.1f} ms a step")


if __name__ == "__main__":
    main()
