# truth: none
# about: leaves by their outline: a convolutional net on pictures that are all in memory, batches cut out of one tensor, one thread a core; the time is the convolutions'
# needs: torch
"""Leaf species from outlines drawn at the start."""
import math
import os

import torch
from torch import nn

SIZE, SPECIES, LEAVES = 40, 6, 1536


def draw(generator):
    """Outlines r(angle) with as many lobes as the species says, filled."""
    species = torch.randint(0, SPECIES, (LEAVES,), generator=generator)
    axis = torch.linspace(-1, 1, SIZE)
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    radius, angle = torch.sqrt(x * x + y * y), torch.atan2(y, x)
    turn = torch.rand(LEAVES, 1, 1, generator=generator) * 2 * math.pi
    edge = 0.6 + 0.2 * torch.cos((species + 2)[:, None, None] * (angle + turn))
    pictures = torch.sigmoid((edge - radius) * 20)
    pictures += 0.1 * torch.randn(LEAVES, SIZE, SIZE, generator=generator)
    return pictures[:, None], species


def main():
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    torch.manual_seed(13)
    generator = torch.Generator().manual_seed(13)
    pictures, species = draw(generator)
    model = nn.Sequential(
        nn.Conv2d(1, 32, 5, stride=2, padding=2), nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(64, 96, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(96, SPECIES))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9, nesterov=True)
    for epoch in range(5):
        total = torch.zeros(())
        parts = torch.randperm(LEAVES, generator=generator).split(64)
        for rows in parts:
            loss = nn.functional.cross_entropy(model(pictures[rows]), species[rows])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(f"epoch {epoch}: {float(total) / len(parts):.3f}")


if __name__ == "__main__":
    main()
