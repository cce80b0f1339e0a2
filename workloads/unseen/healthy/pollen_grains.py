# truth: none
# about: a convolutional network on pollen pictures that lie in memory as one tensor; the step is convolutions, and the batch is of an ordinary size
# needs: torch numpy
"""Counts pollen: names the plant of a grain from its picture under the microscope."""
import time

import torch
from torch import nn

PLANTS, SIDE, BATCH, STEPS = 8, 40, 64, 120


def grains(count, seed):
    g = torch.Generator().manual_seed(seed)
    plant = torch.randint(PLANTS, (count,), generator=g)
    y, x = torch.meshgrid(torch.linspace(-1, 1, SIDE), torch.linspace(-1, 1, SIDE), indexing="ij")
    angle, radius = torch.atan2(y, x), (x * x + y * y).sqrt()
    spikes = (plant.float() + 2).view(-1, 1, 1)
    turn = 6.28 * torch.rand(count, 1, 1, generator=g)
    edge = 0.6 + 0.15 * torch.sin(spikes * angle + turn)
    body = torch.sigmoid(20 * (edge - radius))
    pictures = body.unsqueeze(1).repeat(1, 3, 1, 1)
    pictures += 0.2 * torch.randn(count, 3, SIDE, SIDE, generator=g)
    return pictures.contiguous(memory_format=torch.channels_last), plant


def layer(inside, outside, stride=1):
    return nn.Sequential(nn.Conv2d(inside, outside, 3, stride, 1, bias=False), nn.BatchNorm2d(outside), nn.ReLU(inplace=True))


def main():
    torch.manual_seed(30)
    pictures, plants = grains(1600, 30)
    model = nn.Sequential(
        layer(3, 24, 2), layer(24, 48), layer(48, 64, 2), layer(64, 64), layer(64, 96, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(96, PLANTS)).to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    began, steps = time.perf_counter(), 0
    while steps < STEPS:
        total = torch.zeros(())
        for rows in torch.randperm(len(pictures)).split(BATCH):
            loss = nn.functional.cross_entropy(model(pictures[rows]), plants[rows])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += loss.detach()
            steps += 1
            if steps == STEPS:
                break
        print(f"after {steps} steps: loss {total.item() / 25:.3f}")
    took = time.perf_counter() - began
    print(f"{STEPS} steps, {1000 * took / STEPS:.1f} ms a step")


if __name__ == "__main__":
    main()
