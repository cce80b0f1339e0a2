# truth: evaluation_heavy
# about: after every policy update the greedy policy is tried on 40 fresh loads for full episodes, which takes more time than collecting experience and learning
# cure: --trial-every 20
# gain: run
# whatif: evaluation=20
# needs: torch
"""Teaches a crane to carry a load without swinging: advantage actor critic, many simulated cranes side by side."""
import argparse
import time

import torch
from torch import nn

CRANES = 64
HORIZON = 16
TRIAL = 120


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(5, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
        self.push = nn.Linear(64, 3)
        self.worth = nn.Linear(64, 1)

    def forward(self, state):
        x = self.body(state)
        return self.push(x), self.worth(x).squeeze(-1)


class Cranes:
    """Trolley position and speed, angle and angular speed of the load, where to bring it."""

    def __init__(self, count, seed):
        self.dice = torch.Generator().manual_seed(seed)
        self.state = self.fresh(count)

    def fresh(self, count):
        state = torch.zeros(count, 5)
        state[:, 2] = 0.2 * torch.randn(count, generator=self.dice)
        state[:, 4] = 2 * torch.rand(count, generator=self.dice) - 1
        return state

    def move(self, pushes):
        place, speed, angle, turning, goal = self.state.unbind(1)
        force = (pushes - 1).float()
        speed = 0.98 * speed + 0.05 * force
        turning = 0.995 * turning - 0.05 * (9.8 * torch.sin(angle) / 3 + force * torch.cos(angle) / 3)
        self.state = torch.stack([place + 0.05 * speed, speed, angle + 0.05 * turning, turning, goal], dim=1)
        return -(self.state[:, 0] - goal).abs() - 0.5 * self.state[:, 2].abs()

    def restart_some(self):
        done = torch.rand(len(self.state), generator=self.dice) < 0.1
        self.state = torch.where(done.unsqueeze(1), self.fresh(len(self.state)), self.state)


@torch.no_grad()
def trial(policy, seed):
    policy.eval()
    cranes = Cranes(40, seed)
    total = torch.zeros(40)
    for _ in range(TRIAL):
        pushes, _ = policy(cranes.state)
        total += cranes.move(pushes.argmax(1))
    policy.train()
    return total.mean().item()


def collect(policy, cranes):
    states, actions, rewards = [], [], []
    with torch.no_grad():
        for _ in range(HORIZON):
            chosen = torch.distributions.Categorical(logits=policy(cranes.state)[0], validate_args=False).sample()
            states.append(cranes.state)
            actions.append(chosen)
            rewards.append(cranes.move(chosen))
        worth = policy(cranes.state)[1]
        returns = []
        for reward in reversed(rewards):
            worth = reward + 0.97 * worth
            returns.append(worth)
    cranes.restart_some()
    return torch.cat(states), torch.cat(actions), torch.cat(returns[::-1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=260)
    parser.add_argument("--trial-every", type=int, default=1)
    options = parser.parse_args()
    torch.manual_seed(91)
    policy = Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    cranes = Cranes(CRANES, 92)
    best = float("-inf")
    began = time.perf_counter()
    for update in range(1, options.updates + 1):
        states, actions, returns = collect(policy, cranes)
        logits, worth = policy(states)
        spread = torch.log_softmax(logits, dim=1)
        gain = (returns - worth).detach()
        actor = -(gain * spread.gather(1, actions.unsqueeze(1)).squeeze(1)).mean()
        curious = -(spread.exp() * spread).sum(1).mean()
        loss = actor + 0.5 * nn.functional.mse_loss(worth, returns) - 0.01 * curious
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
        optimizer.step()
        if update % options.trial_every == 0:
            best = max(best, trial(policy, update))
    took = time.perf_counter() - began
    print(f"best trial {best:.2f}; {options.updates} updates, {1000 * took / options.updates:.2f} ms each, {took:.2f} s")


if __name__ == "__main__":
    main()
