# truth: none
# about: a message-passing network predicts where every locust of a swarm flies next; swarms are simulated once and kept in memory, and the products take nearly all of the time
# needs: torch numpy
"""Each locust looks at its eight nearest neighbours."""
import argparse
import time

import numpy as np
import torch
from torch import nn


def simulate(swarms, locusts, seed):
    rng = np.random.default_rng(seed)
    place = rng.uniform(0, 10, (swarms, locusts, 2))
    speed = rng.normal(0, 1, (swarms, locusts, 2))
    dist = ((place[:, :, None] - place[:, None]) ** 2).sum(-1)
    near = np.argsort(dist, -1)[:, :, 1:9]
    mean = np.stack([speed[s][near[s]].mean(1) for s in range(swarms)])
    target = 0.6 * speed + 0.4 * mean + rng.normal(0, 0.05, speed.shape)
    state = np.concatenate([place / 10, speed], -1)
    return [torch.from_numpy(a) for a in (state.astype(np.float32), near, target.astype(np.float32))]


class Swarm(nn.Module):
    def __init__(self, width=160, rounds=2):
        super().__init__()
        self.enter = nn.Linear(4, width)
        self.tell = nn.ModuleList(nn.Sequential(nn.Linear(2 * width, width), nn.ReLU(), nn.Linear(width, width)) for _ in range(rounds))
        self.turn = nn.Linear(width, 2)

    def forward(self, state, near):
        h = self.enter(state)
        b, n, k = near.shape
        row = (torch.arange(b).view(b, 1, 1) * n + near).flatten()
        for tell in self.tell:
            flat = h.flatten(0, 1)
            others = flat.index_select(0, row).view(b, n, k, -1)
            own = h.unsqueeze(2).expand_as(others)
            h = h + tell(torch.cat([own, others], -1)).mean(2)
        return self.turn(h)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=300)
    steps = ap.parse_args().steps
    torch.set_num_threads(2)
    torch.manual_seed(4)
    state, near, target = simulate(200, 64, 4)
    net = Swarm()
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    began = time.perf_counter()
    for step in range(steps):
        pick = torch.randint(len(state), (6,))
        loss = (net(state[pick], near[pick]) - target[pick]).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 40 == 0:
            print(step, loss.item())
    print("%.1f ms a step" % (1e3 * (time.perf_counter() - began) / steps))


if __name__ == "__main__":
    main()
