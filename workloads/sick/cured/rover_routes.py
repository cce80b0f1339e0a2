"""A rover's traction model learns from wheel slip, and meanwhile a route planner keeps the map of costs to the goal fresh."""
import heapq
import multiprocessing as mp
import time

import numpy as np
import torch
from torch import nn

SIDE = 70
STEPS = 90


class Planner(mp.Process):
    """Dijkstra over the height map from one goal after another, until told to stop."""

    def __init__(self, heights):
        super().__init__(daemon=True)
        self.heights = heights.tolist()
        self.halt = mp.Event()
        self.said = mp.SimpleQueue()

    def search(self, goal):
        side, heights = SIDE, self.heights
        cost = [[1e9] * side for _ in range(side)]
        cost[goal[0]][goal[1]] = 0.0
        front = [(0.0, goal)]
        while front:
            c, (i, j) = heapq.heappop(front)
            if c > cost[i][j]:
                continue
            here = heights[i][j]
            for a, b in ((i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)):
                if 0 <= a < side and 0 <= b < side:
                    climb = heights[a][b] - here
                    d = c + 1.0 + 4.0 * climb * climb + (2.0 * climb if climb > 0 else 0.0)
                    if d < cost[a][b]:
                        cost[a][b] = d
                        heapq.heappush(front, (d, (a, b)))
        return sum(map(sum, cost)) / side ** 2

    def run(self):
        goal, maps_done, mean_cost = 0, 0, 0.0
        while not self.halt.is_set():
            goal = (goal * 37 + 11) % SIDE ** 2
            mean_cost = self.search(divmod(goal, SIDE))
            maps_done += 1
        self.said.put((maps_done, mean_cost))

    def close(self):
        self.halt.set()
        said = self.said.get()
        self.join()
        return said


class SlipNet(nn.Module):
    """What the wheels felt in the last moments, and what the slip will be."""

    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(12, 96)
        self.cell = nn.GRUCell(96, 96)
        self.out = nn.Linear(96, 4)

    def forward(self, seq):
        h = seq.new_zeros(seq.shape[1], 96)
        for felt in seq:
            h = self.cell(torch.relu(self.enter(felt)), h)
        return self.out(h)


def terrain(rng):
    z = rng.normal(size=(SIDE, SIDE))
    for _ in range(6):
        z = (z + np.roll(z, 1, 0) + np.roll(z, -1, 0) + np.roll(z, 1, 1) + np.roll(z, -1, 1)) / 2.6
    return z


def main():
    torch.set_num_threads(1)
    torch.manual_seed(15)
    rng = np.random.default_rng(15)
    logs = torch.from_numpy(rng.normal(size=(6000, 12)).astype(np.float32))
    slip = torch.tanh(logs @ torch.randn(12, 4) * 0.4)
    net = SlipNet()
    opt = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)
    planner = Planner(terrain(rng))
    planner.start()
    began = time.perf_counter()
    for step in range(STEPS):
        at = torch.randint(0, 6000 - 5, (192,))
        seq = torch.stack([logs[at + k] for k in range(5)])
        loss = nn.functional.smooth_l1_loss(net(seq), slip[at + 4])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 30 == 29:
            print("step %d: slip error %.4f" % (step + 1, loss.item()))
    took = time.perf_counter() - began
    print("%d maps, mean cost %.2f" % planner.close())
    print("%.2f ms per step" % (1e3 * took / STEPS))


if __name__ == "__main__":
    main()
