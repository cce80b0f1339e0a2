# truth: none
# about: two processes, a core each, drive karts in batches and learn one shared policy side by side without waiting for each other; both cores are busy with forward and backward passes all the time
# needs: torch numpy cores:2
"""Two kart drivers learn one policy (proximal policy optimisation, shared weights as in Hogwild)."""
import os
import time

os.environ["OMP_NUM_THREADS"] = "1"

import torch
import torch.multiprocessing as mp
from torch import nn

KARTS, HORIZON, RAYS, UPDATES = 512, 12, 32, 80


class Track:
    """An oval; karts see the distance to its border along rays. State: position, heading, speed."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)
        self.angles = torch.linspace(-1.6, 1.6, RAYS)
        self.state = torch.stack([torch.rand(KARTS, generator=self.generator) * 6.283,
                                  torch.zeros(KARTS), torch.zeros(KARTS), torch.full((KARTS,), 0.5)], 1)

    def look(self):
        lap, aside, heading, speed = self.state.unbind(1)
        view = heading[:, None] + self.angles
        rays = (1 - aside[:, None] * torch.sign(torch.sin(view))) / (torch.sin(view).abs() + 0.1)
        return torch.cat([rays / 10, torch.stack([aside, heading, speed, torch.sin(2 * lap)], 1)], 1)

    def drive(self, action):
        lap, aside, heading, speed = self.state.unbind(1)
        bend = 0.1 * torch.sin(2 * lap)
        heading = heading + 0.15 * action[:, 0].clamp(-1, 1) - bend
        speed = (speed + 0.1 * action[:, 1].clamp(-1, 1)).clamp(0.1, 1.0)
        aside = aside + 0.2 * speed * torch.sin(heading)
        out = aside.abs() > 1
        reward = speed * torch.cos(heading) - out.float()
        zero = torch.zeros_like(aside)
        self.state = torch.stack([(lap + 0.1 * speed) % 6.283, torch.where(out, zero, aside),
                                  torch.where(out, zero, heading), torch.where(out, zero + 0.5, speed)], 1)
        return reward


class Driver(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(RAYS + 4, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.wheel = nn.Linear(width, 2)
        self.value = nn.Linear(width, 1)
        self.spread = nn.Parameter(torch.full((2,), -0.5))

    def forward(self, sight):
        h = self.trunk(sight)
        return torch.distributions.Normal(self.wheel(h), self.spread.exp()), self.value(h).squeeze(1)


@torch.no_grad()
def collect(driver, track):
    sights, actions, logps, rewards, values = [], [], [], [], []
    for _ in range(HORIZON):
        sight = track.look()
        policy, value = driver(sight)
        action = policy.sample()
        sights.append(sight)
        actions.append(action)
        logps.append(policy.log_prob(action).sum(1))
        values.append(value)
        rewards.append(track.drive(action))
    ahead = driver(track.look())[1]
    targets = []
    for reward in reversed(rewards):
        ahead = reward + 0.9 * ahead
        targets.insert(0, ahead)
    targets, values = torch.cat(targets), torch.cat(values)
    gain = targets - values
    return torch.cat(sights), torch.cat(actions), torch.cat(logps), targets, (gain - gain.mean()) / (gain.std() + 1e-6), torch.stack(rewards).mean().item()


def learn(rank, driver):
    torch.manual_seed(100 + rank)
    torch.set_num_threads(1)
    track = Track(rank)
    optimizer = torch.optim.SGD(driver.parameters(), lr=0.01)
    began = time.perf_counter()
    for update in range(1, UPDATES + 1):
        sights, actions, old, targets, gain, reward = collect(driver, track)
        for rows in torch.randperm(len(old)).chunk(3):
            policy, value = driver(sights[rows])
            ratio = (policy.log_prob(actions[rows]).sum(1) - old[rows]).exp()
            surrogate = torch.min(ratio * gain[rows], ratio.clamp(0.8, 1.2) * gain[rows]).mean()
            loss = 0.5 * (value - targets[rows]).pow(2).mean() - surrogate - 0.001 * policy.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(driver.parameters(), 0.5)
            optimizer.step()
        if rank == 0 and update % 20 == 0:
            print(f"update {update}: reward {reward:.3f}")
    print(f"driver {rank}: {3 * UPDATES} steps, {1000 * (time.perf_counter() - began) / UPDATES / 3:.2f} ms a step")


if __name__ == "__main__":
    torch.manual_seed(1)
    shared = Driver().share_memory()
    other = mp.get_context("fork").Process(target=learn, args=(1, shared))
    other.start()
    learn(0, shared)
    other.join()
