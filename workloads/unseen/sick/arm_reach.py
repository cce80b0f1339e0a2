# truth: checkpoint_stall
# about: after every tenth update the agent is written to the disk together with its whole replay memory, which is compressed each time, and training stands still meanwhile
# cure: --save-every 100
# whatif: checkpoint=10
# gain: run
# needs: torch numpy
"""A two-joint arm learns to reach (TD3 with one critic pair, simulated arms in one array)."""
import argparse
import copy
import itertools
import os
import tempfile
import time

import numpy as np
import torch
from torch import nn

STATE, ACTION, ARMS, ROOM = 8, 2, 64, 160000


class Arms:
    """Joint angles and speeds, and where the hand should go."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.angle = self.rng.uniform(-np.pi, np.pi, (ARMS, 2))
        self.speed = np.zeros((ARMS, 2))
        self.goal = self.rng.uniform(-1, 1, (ARMS, 2))

    def see(self):
        return np.concatenate([np.cos(self.angle), np.sin(self.angle), self.speed, self.goal],
                              axis=1).astype(np.float32)

    def move(self, torque):
        self.speed = 0.95 * self.speed + 0.1 * torque
        self.angle = self.angle + 0.1 * self.speed
        reach = np.cumsum(self.angle, axis=1)
        hand = np.stack([np.cos(reach).sum(1), np.sin(reach).sum(1)], axis=1) / 2
        return -np.abs(hand - self.goal).sum(1).astype(np.float32)


class Replay:
    def __init__(self):
        self.rows = np.zeros((ROOM, 2 * STATE + ACTION + 1), np.float32)
        self.next, self.size = 0, 0

    def add(self, *columns):
        rows = np.concatenate([column.reshape(ARMS, -1) for column in columns], axis=1)
        self.rows[self.next:self.next + ARMS] = rows
        self.next = (self.next + ARMS) % ROOM
        self.size = min(self.size + ARMS, ROOM)

    def sample(self, rng, count):
        rows = torch.from_numpy(self.rows[rng.integers(0, self.size, count)])
        return rows.split([STATE, ACTION, 1, STATE], dim=1)


def net(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, 192), nn.ReLU(), nn.Linear(192, 192), nn.ReLU(),
                         nn.Linear(192, outputs))


def save(folder, step, agent, optimizers, replay):
    path = os.path.join(folder, "agent.pt")
    torch.save({"step": step, "agent": agent.state_dict(),
                "optimizers": [optimizer.state_dict() for optimizer in optimizers]}, path + ".new")
    os.replace(path + ".new", path)
    path = os.path.join(folder, "replay.npz")
    with open(path + ".new", "wb") as file:
        np.savez_compressed(file, rows=replay.rows[:replay.size], next=replay.next)
    os.replace(path + ".new", path)


def main(folder):
    parser = argparse.ArgumentParser()
    parser.add_argument("--save-every", type=int, default=10)
    args = parser.parse_args()
    torch.manual_seed(90)
    rng = np.random.default_rng(90)
    arms, replay = Arms(90), Replay()
    agent = nn.ModuleDict({"actor": net(STATE, ACTION), "one": net(STATE + ACTION, 1),
                           "two": net(STATE + ACTION, 1)})
    slow = copy.deepcopy(agent)
    act = torch.optim.Adam(agent["actor"].parameters(), lr=3e-4)
    judge = torch.optim.Adam(itertools.chain(agent["one"].parameters(), agent["two"].parameters()),
                             lr=3e-4)

    def explore():
        seen = arms.see()
        with torch.no_grad():
            torque = torch.tanh(agent["actor"](torch.from_numpy(seen))).numpy()
        torque = np.clip(torque + 0.2 * rng.normal(size=torque.shape), -1, 1).astype(np.float32)
        reward = arms.move(torque)
        replay.add(seen, torque, reward, arms.see())

    for _ in range(1875):
        explore()
    steps, saving, start = 300, 0.0, time.perf_counter()
    for step in range(1, steps + 1):
        explore()
        state, action, reward, after = replay.sample(rng, 256)
        with torch.no_grad():
            choice = torch.tanh(slow["actor"](after)) + 0.1 * torch.randn_like(action)
            both = torch.cat([after, choice.clamp(-1, 1)], 1)
            wanted = reward + 0.95 * torch.minimum(slow["one"](both), slow["two"](both))
        both = torch.cat([state, action], 1)
        loss = ((agent["one"](both) - wanted) ** 2 + (agent["two"](both) - wanted) ** 2).mean()
        judge.zero_grad()
        loss.backward()
        judge.step()
        if step % 2 == 0:
            chosen = torch.cat([state, torch.tanh(agent["actor"](state))], 1)
            act.zero_grad()
            (-agent["one"](chosen).mean()).backward()
            act.step()
            with torch.no_grad():
                for old, new in zip(slow.parameters(), agent.parameters()):
                    old.lerp_(new, 0.01)
        if step % args.save_every == 0:
            before = time.perf_counter()
            save(folder, step, agent, (act, judge), replay)
            saving += time.perf_counter() - before
        if step % 100 == 0:
            print("step %d  critic %.4f" % (step, loss.item()))
    spent = time.perf_counter() - start
    print("%d steps, %.1f ms per step, %.1f of it saving"
          % (steps, 1e3 * spent / steps, 1e3 * saving / steps))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="arm-") as name:
        main(name)
