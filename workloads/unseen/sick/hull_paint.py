# truth: evaluation_heavy
# about: after every fifth step the model is run over all of the held-out plates, which takes far longer than the five steps; a tenth as often would tell the same
# cure: --check-every 50
# whatif: evaluation=10
# gain: run
# needs: torch numpy
"""Fouling of ships' hulls: the share of a plate that is overgrown, from camera patches of a dry dock."""
import argparse
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Plates(Dataset):
    def __init__(self, count, seed, side=32):
        rng = np.random.default_rng(seed)
        share = rng.random(count).astype(np.float32)
        steel = rng.normal(90, 18, (count, 3, side, side))
        weed = rng.random((count, 1, side, side)) < share[:, None, None, None]
        self.patches = np.clip(np.where(weed, steel * np.array([0.4, 0.9, 0.5])[:, None, None], steel), 0, 255).astype(np.uint8)
        self.share = share

    def __len__(self):
        return len(self.share)

    def __getitem__(self, i):
        return torch.from_numpy(self.patches[i]).float().div_(255), self.share[i]


class Fouling(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, stride=2, padding=1)
        self.a = nn.Conv2d(width, width, 3, padding=1)
        self.b = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.head = nn.Linear(2 * width, 1)

    def forward(self, x):
        x = F.relu(self.stem(x))
        x = F.relu(x + self.a(x))
        x = F.relu(self.b(x)).mean((2, 3))
        return torch.sigmoid(self.head(x)).squeeze(1)


@torch.no_grad()
def held_out(model, loader):
    model.eval()
    wrong, seen = 0.0, 0
    for patches, share in loader:
        wrong += (model(patches) - share).abs().sum().item()
        seen += len(share)
    model.train()
    return wrong / seen


def forever(loader):
    while True:
        yield from loader


def train(cfg):
    torch.manual_seed(cfg.seed)
    fit = DataLoader(Plates(2400, cfg.seed), batch_size=48, shuffle=True, drop_last=True)
    held = DataLoader(Plates(1600, cfg.seed + 1), batch_size=100)
    model = Fouling()
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, cfg.steps)
    best, began = 1.0, time.perf_counter()
    for step, (patches, share) in zip(range(1, cfg.steps + 1), forever(fit)):
        loss = F.smooth_l1_loss(model(patches), share)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        if step % cfg.check_every == 0:
            error = held_out(model, held)
            best = min(best, error)
            print(f"{step:4d}  loss {loss.item():.4f}  held out {error:.4f}  best {best:.4f}")
    print(f"{time.perf_counter() - began:.2f} s, cpu {time.process_time():.2f}")


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=150)
    ap.add_argument("--check-every", type=int, default=5)
    ap.add_argument("--seed", type=int, default=12)
    train(ap.parse_args())
