# truth: none
# about: a small GAN for woven patterns with two optimizers; its data are in memory, batches are of a sensible size, all time goes into convolutions
# needs: torch
"""Invents weaving patterns: a generator and a critic play against each other, each with its own optimizer."""
import math
import time

import torch
from torch import nn
from torch.nn import functional as F

SIDE = 32
NOISE = 48
BATCH = 64
STEPS = 85


def weave(count):
    """Warp and weft stripes of random width and phase, with a twill diagonal."""
    y, x = torch.meshgrid(torch.arange(SIDE).float(), torch.arange(SIDE).float(), indexing="ij")
    width = (torch.rand(count, 2, 1, 1) * 4 + 3)
    phase = torch.rand(count, 3, 1, 1) * 2 * math.pi
    cloth = torch.sin(2 * math.pi * x / width[:, 0] + phase[:, 0]) + torch.sin(2 * math.pi * y / width[:, 1] + phase[:, 1])
    cloth = cloth + 0.5 * torch.sin(2 * math.pi * (x + y) / 8 + phase[:, 2])
    return torch.tanh(cloth).unsqueeze(1)


def generator():
    return nn.Sequential(
        nn.Linear(NOISE, 64 * 8 * 8), nn.Unflatten(1, (64, 8, 8)), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
        nn.ConvTranspose2d(64, 48, 4, stride=2, padding=1, bias=False), nn.BatchNorm2d(48), nn.ReLU(inplace=True),
        nn.ConvTranspose2d(48, 1, 4, stride=2, padding=1), nn.Tanh())


def critic():
    return nn.Sequential(
        nn.Conv2d(1, 48, 4, stride=2, padding=1), nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(48, 64, 4, stride=2, padding=1), nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(64, 64, 3, padding=1), nn.LeakyReLU(0.2, inplace=True),
        nn.Flatten(), nn.Linear(64 * 8 * 8, 1))


def main():
    torch.manual_seed(71)
    cloths = weave(4096)
    maker, judge = generator(), critic()
    maker_steps = torch.optim.Adam(maker.parameters(), lr=2e-4, betas=(0.5, 0.99))
    judge_steps = torch.optim.Adam(judge.parameters(), lr=2e-4, betas=(0.5, 0.99))
    began = time.perf_counter()
    for step in range(1, STEPS + 1):
        real = cloths[torch.randint(len(cloths), (BATCH,))]
        made = maker(torch.randn(BATCH, NOISE))

        judge_loss = F.relu(1 - judge(real)).mean() + F.relu(1 + judge(made.detach())).mean()
        judge_steps.zero_grad(set_to_none=True)
        judge_loss.backward()
        judge_steps.step()

        judge.requires_grad_(False)
        maker_loss = -judge(made).mean()
        maker_steps.zero_grad(set_to_none=True)
        maker_loss.backward()
        maker_steps.step()
        judge.requires_grad_(True)

        if step % 40 == 0:
            print(f"step {step}: judge {judge_loss.item():.3f} maker {maker_loss.item():.3f}")
    took = time.perf_counter() - began
    print(f"{STEPS} steps, {1000 * took / STEPS:.2f} ms each, {took:.2f} s")


if __name__ == "__main__":
    main()
