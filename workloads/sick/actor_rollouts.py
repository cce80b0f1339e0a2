# truth: oversubscribed
# about: four rollout processes beside the learner each let torch use sixteen threads, so some eighty threads fight for two cores in many tiny parallel loops
# also: sync_stall data_loading_bound
# cure: --threads 1
# needs: torch
"""Advantage actor-critic on a vectorised pendulum; actors roll out in processes of their own."""
import argparse
import multiprocessing as mp

import numpy as np
import torch
from torch import nn
from torch.distributions import Normal

ENVS, HORIZON, HIDDEN = 384, 6, 192


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, HIDDEN), nn.Tanh())
        self.mean = nn.Linear(HIDDEN, 1)
        self.value = nn.Linear(HIDDEN, 1)

    def forward(self, obs):
        h = self.body(obs)
        return self.mean(h).squeeze(-1), self.value(h).squeeze(-1)


class Pendulums:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.theta = self.rng.uniform(-np.pi, np.pi, ENVS)
        self.speed = self.rng.uniform(-1, 1, ENVS)

    def observe(self):
        return np.stack([np.cos(self.theta), np.sin(self.theta), self.speed], 1).astype(np.float32)

    def advance(self, torque):
        torque = np.clip(torque, -2, 2)
        angle = (self.theta + np.pi) % (2 * np.pi) - np.pi
        reward = -(angle**2 + 0.1 * self.speed**2 + 0.001 * torque**2)
        self.speed = np.clip(self.speed + (15 * np.sin(self.theta) + 3 * torque) * 0.05, -8, 8)
        self.theta = self.theta + self.speed * 0.05
        return reward.astype(np.float32)


def actor(pipe, seed, threads):
    torch.set_num_threads(threads)
    torch.manual_seed(seed)
    policy, envs = Policy(), Pendulums(seed)
    while pipe.poll(100):  # the learner is gone when nothing comes
        weights = pipe.recv()
        if weights is None:
            return
        policy.load_state_dict({k: torch.from_numpy(v) for k, v in weights.items()})
        seen, done, paid = [], [], []
        with torch.no_grad():
            for _ in range(HORIZON):
                obs = torch.from_numpy(envs.observe())
                mean, _ = policy(obs)
                action = mean + 0.3 * torch.randn_like(mean)
                seen.append(obs.numpy())
                done.append(action.numpy())
                paid.append(envs.advance(action.numpy()))
        pipe.send((np.stack(seen), np.stack(done), np.stack(paid)))


def discounted(rewards, gamma=0.97):
    out = np.zeros_like(rewards)
    running = np.zeros(rewards.shape[1], np.float32)
    for t in reversed(range(len(rewards))):
        running = rewards[t] + gamma * running
        out[t] = running
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--actors", type=int, default=4)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--updates", type=int, default=120)
    args = parser.parse_args()

    pipes, processes = [], []
    for k in range(args.actors):
        here, there = mp.Pipe()
        p = mp.Process(target=actor, args=(there, k + 1, args.threads), daemon=True)
        p.start()
        pipes.append(here)
        processes.append(p)

    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    policy = Policy()
    optimizer = torch.optim.RMSprop(policy.parameters(), lr=3e-4)
    for update in range(args.updates):
        weights = {k: v.numpy() for k, v in policy.state_dict().items()}
        for pipe in pipes:
            pipe.send(weights)
        rollouts = [pipe.recv() for pipe in pipes]
        obs = torch.from_numpy(np.concatenate([r[0].reshape(-1, 3) for r in rollouts]))
        act = torch.from_numpy(np.concatenate([r[1].reshape(-1) for r in rollouts]))
        ret = torch.from_numpy(np.concatenate([discounted(r[2]).reshape(-1) for r in rollouts]))
        mean, value = policy(obs)
        advantage = (ret - value).detach()
        loss = -(Normal(mean, 0.3).log_prob(act) * advantage).mean() + 0.01 * (ret - value).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if update % 40 == 0:
            print(f"update {update}: loss {loss.item():.3f}")
    for pipe in pipes:
        pipe.send(None)
    for p in processes:
        p.join()


if __name__ == "__main__":
    main()
