# truth: too_many_workers
# about: all crops and boxes lie in memory and a sample costs next to nothing to make, yet ten workers make them and every batch (a list of single tensors) is shipped to the trainer through shared memory, tensor by tensor
# also: data_loading_bound oversubscribed
# cure: --workers 0
# whatif: workers=0
# needs: torch numpy
"""Finds taken bays in overhead photographs of a car park.

A small one-stage detector (centre heat map plus box size) on crops of the
camera pictures. The crops of one week fit in memory as uint8.
"""
import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

CROP = 128
STRIDE = 8


def paint_week(count, seed):
    """Asphalt, lines and cars; returns pictures and a box list for each."""
    rng = np.random.default_rng(seed)
    pictures = rng.integers(70, 100, (count, 3, CROP, CROP), dtype=np.uint8)
    boxes = []
    for k in range(count):
        pictures[k, :, :, ::32] = 220
        found = []
        for bay in range(4):
            if rng.random() < 0.6:
                h, w = rng.integers(36, 60), rng.integers(16, 26)
                y, x = rng.integers(4, CROP - 64), bay * 32 + rng.integers(2, 6)
                pictures[k, :, y:y + h, x:x + w] = rng.integers(0, 255, (3, 1, 1))
                found.append((x, y, x + w, y + h))
        if not found:
            found.append((4, 4, 24, 48))
        boxes.append(np.asarray(found, dtype=np.float32))
    return pictures, boxes


class Bays(Dataset):
    def __init__(self, count, seed):
        self.pictures, self.boxes = paint_week(count, seed)

    def __len__(self):
        return len(self.boxes)

    def __getitem__(self, k):
        picture = torch.from_numpy(self.pictures[k])
        box = torch.from_numpy(self.boxes[k])
        target = {
            "boxes": box,
            "labels": torch.ones(len(box), dtype=torch.int64),
            "area": (box[:, 2] - box[:, 0]) * (box[:, 3] - box[:, 1]),
            "iscrowd": torch.zeros(len(box), dtype=torch.uint8),
            "image_id": torch.tensor([k]),
        }
        return picture, target


def keep_lists(samples):
    return tuple(zip(*samples))


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 16, 4, stride=4), nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(32, 32, 3, padding=1), nn.ReLU())
        self.heat = nn.Conv2d(32, 1, 1)
        self.size = nn.Conv2d(32, 2, 1)

    def forward(self, x):
        h = self.body(x)
        return self.heat(h), self.size(h)


def draw_targets(targets):
    cells = CROP // STRIDE
    heat = torch.zeros(len(targets), 1, cells, cells)
    size = torch.zeros(len(targets), 2, cells, cells)
    for i, target in enumerate(targets):
        b = target["boxes"]
        cx = ((b[:, 0] + b[:, 2]) / (2 * STRIDE)).long().clamp(max=cells - 1)
        cy = ((b[:, 1] + b[:, 3]) / (2 * STRIDE)).long().clamp(max=cells - 1)
        heat[i, 0, cy, cx] = 1.0
        size[i, :, cy, cx] = torch.stack((b[:, 2] - b[:, 0], b[:, 3] - b[:, 1])) / CROP
    return heat, size


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--workers", type=int, default=10)
    ap.add_argument("--batch", type=int, default=32)
    ap.add_argument("--crops", type=int, default=4480)
    args = ap.parse_args()
    torch.manual_seed(3)

    week = Bays(args.crops, seed=8)
    loader = DataLoader(week, batch_size=args.batch, shuffle=True, collate_fn=keep_lists,
                        num_workers=args.workers, drop_last=True)
    net = Detector()
    opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)

    total = 0.0
    for step, (pictures, targets) in enumerate(loader, 1):
        x = torch.stack(pictures).float().div_(255)
        heat, size = draw_targets(targets)
        p_heat, p_size = net(x)
        loss = F.binary_cross_entropy_with_logits(p_heat, heat, pos_weight=torch.tensor(20.0))
        loss = loss + ((p_size - size) * heat).abs().sum() / heat.sum()
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        total += loss.item()
        if step % 40 == 0:
            print(f"{step:4d}  loss {total / 40:.3f}")
            total = 0.0


if __name__ == "__main__":
    main()
