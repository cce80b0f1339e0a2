#!/usr/bin/env python3
# truth: slow_samples
# about: crops are drawn again until one has both water and buildings in it; in two of a hundred scenes the two hardly ever meet, so that one sample takes thousands of tries and the batches behind it wait in order
# also: data_loading_bound preprocessing_bound
# cure: --crops indexed
# needs: torch numpy
"""Flood mapping from radar scenes: a small U-Net learns water on 64 x 64 crops.

The crops should show the border that matters, flooded streets, so a crop has to have some
water and some buildings. `--crops drawn` draws until it finds one, `--crops indexed` looks up
the places that qualify, which were listed once for each scene.
"""
import argparse
import os
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, RandomSampler

SIDE, CROP, SCENES, STEPS, BATCH = 256, 64, 150, 200, 8
NEED_WATER, NEED_BUILT = 121, 121


def make_scenes(folder, rng):
    for i in range(SCENES):
        image = rng.normal(0, 400, (2, SIDE, SIDE)).astype(np.int16)
        label = np.zeros((SIDE, SIDE), np.uint8)
        if i % 50 == 17:
            # a reservoir in the far corner, a village in the other one: hardly a crop has both
            label[:106, :106] = 1
            label[148:, 148:] = 2
        else:
            level = int(rng.integers(70, 180))
            label[:, :level] = 1
            for _ in range(60):
                r, c = rng.integers(0, SIDE - 12, 2)
                label[r:r + 10, c:c + 10] = 2
        image[0][label == 1] -= 900
        image[1][label == 2] += 700
        np.savez(os.path.join(folder, f"scene{i:03d}.npz"), image=image, label=label)


class Scenes(Dataset):
    def __init__(self, folder, crops):
        self.paths = sorted(os.path.join(folder, n) for n in os.listdir(folder))
        self.places = [self.list_places(p) for p in self.paths] if crops == "indexed" else None

    @staticmethod
    def counts(mask):
        total = np.zeros((SIDE + 1, SIDE + 1), np.int32)
        np.cumsum(np.cumsum(mask, 0, dtype=np.int32), 1, out=total[1:, 1:])
        return total[CROP:, CROP:] - total[:-CROP, CROP:] - total[CROP:, :-CROP] + total[:-CROP, :-CROP]

    def list_places(self, path):
        label = np.load(path)["label"]
        good = (self.counts(label == 1) >= NEED_WATER) & (self.counts(label == 2) >= NEED_BUILT)
        return np.argwhere(good).astype(np.int16)

    def draw(self, label, rng, tries=30000):
        for _ in range(tries):
            r, c = rng.integers(0, SIDE - CROP + 1, 2)
            part = label[r:r + CROP, c:c + CROP]
            if np.count_nonzero(part == 1) >= NEED_WATER and np.count_nonzero(part == 2) >= NEED_BUILT:
                break
        return r, c

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        with np.load(self.paths[i]) as scene:
            image, label = scene["image"], scene["label"]
        rng = np.random.default_rng(torch.randint(1 << 30, (1,)).item())
        if self.places is None:
            r, c = self.draw(label, rng)
        elif len(self.places[i]):
            r, c = self.places[i][rng.integers(len(self.places[i]))]
        else:
            r, c = rng.integers(0, SIDE - CROP + 1, 2)
        image = image[:, r:r + CROP, c:c + CROP].astype(np.float32) / 1000
        return torch.from_numpy(image), torch.from_numpy(label[r:r + CROP, c:c + CROP].astype(np.int64))


def block(a, b, stride=1):
    return nn.Sequential(nn.Conv2d(a, b, 3, stride=stride, padding=1), nn.BatchNorm2d(b), nn.ReLU())


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1, self.down2, self.down3 = block(2, 16, 2), block(16, 32, 2), block(32, 64, 2)
        self.up2, self.up1 = block(96, 32), block(48, 16)
        self.head = nn.Conv2d(16, 3, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(a)
        c = self.down3(b)
        b = self.up2(torch.cat([b, nn.functional.interpolate(c, scale_factor=2.0)], 1))
        a = self.up1(torch.cat([a, nn.functional.interpolate(b, scale_factor=2.0)], 1))
        return nn.functional.interpolate(self.head(a), scale_factor=2.0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--crops", choices=["drawn", "indexed"], default="drawn")
    args = parser.parse_args()
    torch.manual_seed(4)
    with tempfile.TemporaryDirectory(prefix="flood_") as folder:
        make_scenes(folder, np.random.default_rng(4))
        scenes = Scenes(folder, args.crops)
        order = RandomSampler(scenes, replacement=True, num_samples=STEPS * BATCH)
        loader = DataLoader(scenes, batch_size=BATCH, sampler=order, num_workers=2)
        model = UNet()
        optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
        begin = time.perf_counter()
        for step, (image, label) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(image), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 50 == 49:
                print(f"step {step + 1}: loss {loss.item():.3f}")
        seconds = time.perf_counter() - begin
        print(f"{STEPS} steps in {seconds:.2f} s, {1000 * seconds / STEPS:.1f} ms a step")


if __name__ == "__main__":
    main()
