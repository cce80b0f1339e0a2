# truth: none
# about: a steering policy trained through a differentiable simulation of five hundred boats at once; large matrix products take the time and there is nothing to load
# needs: torch
"""Learns to sail to a mark upwind. The simulation of the boats is written in torch, and the gradient goes through it."""
import math
import time

import torch
from torch import nn

BOATS, SECONDS, UPDATES = 512, 5, 110


class Helm(nn.Module):
    def __init__(self, width=512):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(7, width), nn.ReLU(inplace=True),
                                 nn.Linear(width, width), nn.ReLU(inplace=True),
                                 nn.Linear(width, width), nn.ReLU(inplace=True), nn.Linear(width, 1))

    def forward(self, state):
        return torch.tanh(self.net(state)).squeeze(1)


def start(boats, generator):
    spread = torch.rand(boats, 3, generator=generator)
    place = (spread[:, :2] - 0.5) * torch.tensor([8.0, 2.0])
    heading = (spread[:, 2] - 0.5) * 2 * math.pi
    return place, heading, torch.full((boats,), 0.5)


def polar(angle):
    """Speed of the boat at an angle to the wind: none in the eye of it, best across."""
    return 1.6 * torch.sin(angle).abs() * (1.2 - torch.cos(angle)) / 2


def sail(helm, place, heading, speed, mark):
    far = (place - mark).norm(dim=1)
    for _ in range(SECONDS):
        to_mark = mark - place
        state = torch.cat([to_mark / 5, torch.stack([heading.sin(), heading.cos(), speed], dim=1),
                           place / 5], dim=1)
        heading = heading + 0.6 * helm(state)
        speed = speed + 0.4 * (polar(heading) - speed)
        course = torch.stack([heading.sin(), heading.cos()], dim=1)
        place = place + 0.5 * speed[:, None] * course
    return (place - mark).norm(dim=1) - far


def main():
    torch.manual_seed(6)
    generator = torch.Generator().manual_seed(6)
    helm = Helm()
    optimizer = torch.optim.Adam(helm.parameters(), lr=1e-3)
    mark = torch.tensor([0.0, 6.0])
    begin = time.perf_counter()
    for update in range(UPDATES):
        optimizer.zero_grad(set_to_none=True)
        gained = sail(helm, *start(BOATS, generator), mark).mean()
        gained.backward()
        nn.utils.clip_grad_norm_(helm.parameters(), 5.0)
        optimizer.step()
        if update % 20 == 0:
            print("update %2d: nearer to the mark by %.2f" % (update, -gained.item()))
    print("%.2f ms an update" % ((time.perf_counter() - begin) / UPDATES * 1e3))


if __name__ == "__main__":
    main()
