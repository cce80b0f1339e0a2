# truth: none
# about: learns to swing up a pendulum: a thousand pendulums at once in numpy, 32 moves, then four passes over them with clipped policy gradients in large minibatches; the passes are the time, and nothing is to be gained
# needs: torch numpy
"""Clipped policy gradients on many pendulums at once."""
import time

import numpy as np
import torch
from torch import nn

COUNT, MOVES, PASSES, MINI = 1024, 32, 4, 8192


class Pendulums:
    def __init__(self, count):
        self.rng = np.random.default_rng(71)
        self.angle = self.rng.uniform(-np.pi, np.pi, count).astype(np.float32)
        self.speed = self.rng.uniform(-1, 1, count).astype(np.float32)

    def look(self):
        return np.stack([np.cos(self.angle), np.sin(self.angle), self.speed * np.float32(0.125)], 1)

    def move(self, push):
        push = np.clip(push, -2, 2)
        turned = (self.angle + np.float32(np.pi)) % np.float32(2 * np.pi) - np.float32(np.pi)
        reward = -(turned ** 2 + np.float32(0.1) * self.speed ** 2 + np.float32(0.001) * push ** 2)
        self.speed = np.clip(self.speed + np.float32(0.75) * np.sin(self.angle) + np.float32(0.15) * push, -8, 8)
        self.angle = self.angle + self.speed * np.float32(0.05)
        return self.look(), reward


class Policy(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.push = nn.Linear(width, 1)
        self.value = nn.Linear(width, 1)
        self.spread = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        h = self.body(x)
        return self.push(h).squeeze(1), self.value(h).squeeze(1)

    def chance(self, mean, push):
        return -0.5 * ((push - mean) / self.spread.exp()) ** 2 - self.spread


def main():
    torch.manual_seed(8)
    world, net = Pendulums(COUNT), Policy()
    opt = torch.optim.Adam(net.parameters(), lr=7e-4)
    seen = torch.empty(MOVES, COUNT, 3)
    pushes, chances, values, rewards = (torch.empty(MOVES, COUNT) for _ in range(4))
    view = torch.from_numpy(world.look())
    updates = 0
    begin = time.perf_counter()
    for turn in range(TURNS):
        with torch.no_grad():
            for m in range(MOVES):
                mean, value = net(view)
                push = mean + net.spread.exp() * torch.randn(COUNT)
                seen[m], pushes[m], values[m], chances[m] = view, push, value, net.chance(mean, push)
                now, reward = world.move(push.numpy())
                rewards[m] = torch.from_numpy(reward) * 0.1
                view = torch.from_numpy(now)
            last, gain = net(view)[1], torch.zeros(COUNT)
            gains = torch.empty(MOVES, COUNT)
            for m in reversed(range(MOVES)):
                gain = rewards[m] + 0.97 * last - values[m] + 0.97 * 0.95 * gain
                gains[m], last = gain, values[m]
            goal = (gains + values).flatten()
            gains = ((gains - gains.mean()) / gains.std()).flatten()
        flat, old, acts = seen.flatten(0, 1), chances.flatten(), pushes.flatten()
        for _ in range(PASSES):
            for pick in torch.randperm(MOVES * COUNT).split(MINI):
                mean, value = net(flat[pick])
                ratio = (net.chance(mean, acts[pick]) - old[pick]).exp()
                g = gains[pick]
                loss = -torch.minimum(ratio * g, ratio.clamp(0.8, 1.2) * g).mean()
                loss = loss + 0.5 * nn.functional.mse_loss(value, goal[pick])
                opt.zero_grad(set_to_none=True)
                loss.backward()
                opt.step()
                updates += 1
        if turn % 5 == 4:
            print(f"turn {turn + 1} reward {rewards.mean().item():.4f}")
    spent = time.perf_counter() - begin
    print(f"{updates} updates, {TURNS * MOVES} moves, {spent:.2f} s, {1000 * spent / updates:.2f} ms an update")


TURNS = 20
if __name__ == "__main__":
    main()
