# truth: fd_leak
# about: rollouts are spilled to files made by tempfile.mkstemp, whose open descriptor is never closed; the file is read back and deleted by name, the descriptor stays, five more with every step
# cure: cured/glove_box.py
# gain: none
# needs: torch numpy
"""A manipulator arm in a glove box learns to move vials, actor and critic with spilled rollouts.

The simulator writes each rollout to scratch files (it is the format that the real arm's controller writes), the
learner reads them, learns and removes them.
"""
import os
import tempfile
import time

import numpy as np
import torch
from torch import nn

OBS, ACT, HORIZON, ARMS, ROLLOUTS, STEPS = 24, 7, 40, 96, 5, 160


class Arm:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.carry = (self.rng.standard_normal((OBS, OBS)) * 0.15).astype(np.float32)
        self.push = (self.rng.standard_normal((ACT, OBS)) * 0.3).astype(np.float32)
        self.goal = self.rng.standard_normal(OBS).astype(np.float32) * 0.3

    def rollout(self, weight, bias):
        state = self.rng.standard_normal((ARMS, OBS)).astype(np.float32)
        out = np.empty((HORIZON, ARMS, OBS + ACT + 1), np.float32)
        for t in range(HORIZON):
            act = np.tanh(state @ weight + bias) + 0.2 * self.rng.standard_normal((ARMS, ACT), dtype=np.float32)
            out[t, :, :OBS], out[t, :, OBS:OBS + ACT] = state, act
            state = np.tanh(state @ self.carry + act @ self.push)
            out[t, :, -1] = -np.square(state - self.goal).mean(1)
        return out


def spill(rollout, folder):
    fd, path = tempfile.mkstemp(suffix=".roll", dir=folder)
    rollout.tofile(path)
    return path


def take(path):
    rollout = np.fromfile(path, np.float32).reshape(HORIZON, ARMS, OBS + ACT + 1)
    os.unlink(path)
    return torch.from_numpy(rollout)


def main():
    torch.manual_seed(9)
    arm = Arm(9)
    actor = nn.Linear(OBS, ACT)
    critic = nn.Sequential(nn.Linear(OBS, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
    actor_opt = torch.optim.Adam(actor.parameters(), lr=3e-3)
    critic_opt = torch.optim.Adam(critic.parameters(), lr=1e-3)
    with tempfile.TemporaryDirectory(prefix="glove_box_") as folder:
        began = time.perf_counter()
        for step in range(STEPS):
            weight, bias = actor.weight.detach().numpy().T.copy(), actor.bias.detach().numpy().copy()
            paths = [spill(arm.rollout(weight, bias), folder) for _ in range(ROLLOUTS)]
            data = torch.cat([take(p) for p in paths], 1)
            obs, act, reward = data[..., :OBS], data[..., OBS:OBS + ACT], data[..., -1]
            returns = torch.empty_like(reward)
            total = torch.zeros(reward.shape[1])
            for t in range(HORIZON - 1, -1, -1):
                total = reward[t] + 0.95 * total
                returns[t] = total
            value = critic(obs).squeeze(2)
            critic_loss = nn.functional.mse_loss(value, returns)
            critic_opt.zero_grad()
            critic_loss.backward()
            critic_opt.step()
            better = returns - value.detach()
            better = (better - better.mean()) / (better.std() + 1e-6)
            miss = (act - torch.tanh(actor(obs))).square().sum(2)
            actor_loss = (better * miss).mean()
            actor_opt.zero_grad()
            actor_loss.backward()
            actor_opt.step()
            if step % 32 == 31:
                print(f"step {step + 1} return {returns[0].mean().item():.3f}")
        took = time.perf_counter() - began
    print(f"{STEPS} steps, {1000 * took / STEPS:.1f} ms a step")


if __name__ == "__main__":
    main()
