#!/usr/bin/env python3
# truth: none
# about: a dispatcher for the lifts of 256 simulated buildings learns by deep Q-learning; buildings move together in a few tensor operations, the memory of past moves fills up as it should (it is drawn from all the time, and has a fixed size), and the network's arithmetic takes the time
# needs: torch
"""Which way should the lift go? Deep Q-learning, many buildings at once."""
import time

import torch
from torch import nn

FLOORS, BUILDINGS, BATCH = 20, 256, 256


class Buildings:
    """One lift each. State: where it is, who waits on which floor and for how long."""

    def __init__(self, days):
        self.come = (torch.rand(days, BUILDINGS, FLOORS) < 0.02).float()  # who comes when, for all of the run
        self.now = 0
        self.place = torch.zeros(BUILDINGS, dtype=torch.long)
        self.waiting = torch.zeros(BUILDINGS, FLOORS)
        self.rows = torch.arange(BUILDINGS)

    def seen(self):
        here = nn.functional.one_hot(self.place, FLOORS).float()
        return torch.cat([here, self.waiting / 10, (self.waiting > 0).float()], 1)

    def move(self, action):
        self.place = (self.place + action - 1).clamp(0, FLOORS - 1)
        stays = action == 1
        served = self.waiting[self.rows, self.place] * stays
        self.waiting[self.rows, self.place] -= served
        self.waiting += (self.waiting > 0).float()
        self.waiting += self.come[self.now]
        self.now += 1
        return served / 10 - 0.02 * (self.waiting > 0).sum(1)


class Memory:
    def __init__(self, size):
        self.before = torch.empty(size, 3 * FLOORS)
        self.after = torch.empty(size, 3 * FLOORS)
        self.action = torch.empty(size, dtype=torch.long)
        self.reward = torch.empty(size)
        self.at, self.full, self.size = 0, 0, size

    def add(self, before, action, reward, after):
        rows = slice(self.at, self.at + BUILDINGS)
        self.before[rows], self.action[rows], self.reward[rows], self.after[rows] = before, action, reward, after
        self.at = (self.at + BUILDINGS) % self.size
        self.full = min(self.full + BUILDINGS, self.size)

    def draw(self):
        rows = torch.randint(0, self.full, (BATCH,))
        return self.before[rows], self.action[rows], self.reward[rows], self.after[rows]


def q_network(width=512):
    return nn.Sequential(nn.Linear(3 * FLOORS, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 3))


def main():
    torch.manual_seed(11)
    steps = 700
    buildings, memory = Buildings(steps), Memory(BUILDINGS * 500)
    policy, target = q_network(), q_network()
    target.load_state_dict(policy.state_dict())
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-4)
    begin, gained = time.perf_counter(), torch.zeros(())
    state = buildings.seen()
    for step in range(steps):
        with torch.no_grad():
            greedy = policy(state).argmax(1)
            action = torch.where(torch.rand(BUILDINGS) < 0.1, torch.randint(0, 3, (BUILDINGS,)), greedy)
            reward = buildings.move(action)
            after = buildings.seen()
        memory.add(state, action, reward, after)
        state = after
        gained += reward.mean()
        before, act, rew, then = memory.draw()
        with torch.no_grad():
            goal = rew + 0.95 * target(then).amax(1)
        loss = nn.functional.smooth_l1_loss(policy(before).gather(1, act[:, None]).squeeze(1), goal)
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()
        if step % 100 == 99:
            target.load_state_dict(policy.state_dict())
            print(f"step {step + 1}: reward {float(gained) / 100:.3f}")
            gained.zero_()
    took = time.perf_counter() - begin
    print(f"{steps} steps, {took:.2f} s, {1e3 * took / steps:.1f} ms a step")


if __name__ == "__main__":
    main()
