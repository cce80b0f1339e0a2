# truth: metadata_bound
# about: the replay memory keeps every transition in a file of its own and lists the episode's folder before each draw: listing, stat and open cost far more than the 100 bytes read
# also: data_loading_bound small_reads
# cure: --packed
# needs: torch numpy
"""Offline Q-learning from recorded episodes."""
import argparse
import contextlib
import os
import random
import tempfile

import numpy as np
import torch
from torch import nn

EPISODES, STEPS, STATE, ACTIONS = 60, 150, 12, 4
ROW = 2 * STATE + 2  # state, next state, action, reward


def record(folder, packed):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((EPISODES, STEPS, ROW)).astype(np.float32)
    rows[..., -2] = rng.integers(0, ACTIONS, size=(EPISODES, STEPS))
    if packed:
        np.save(os.path.join(folder, "replay.npy"), rows)
        return
    for e in range(EPISODES):
        episode = os.path.join(folder, f"episode_{e:04d}")
        os.mkdir(episode)
        for t in range(STEPS):
            with open(os.path.join(episode, f"{t:05d}.bin"), "wb") as f:
                f.write(rows[e, t].tobytes())


class FolderReplay:
    """Any number of actors may write into the folder while we draw from it."""

    def __init__(self, folder):
        self.folder = folder

    def draw(self):
        episode = os.path.join(self.folder, f"episode_{random.randrange(EPISODES):04d}")
        names = [n for n in os.listdir(episode) if os.path.getsize(os.path.join(episode, n)) == 4 * ROW]
        with open(os.path.join(episode, random.choice(names)), "rb") as f:
            return np.frombuffer(f.read(), dtype=np.float32)

    def sample(self, n):
        return np.stack([self.draw() for _ in range(n)])


class PackedReplay:
    def __init__(self, folder):
        self.rows = np.load(os.path.join(folder, "replay.npy"), mmap_mode="r")

    def sample(self, n):
        return np.stack([self.rows[random.randrange(EPISODES), random.randrange(STEPS)] for _ in range(n)])


def q_network():
    return nn.Sequential(nn.Linear(STATE, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, ACTIONS))


def learn(memory, updates, batch, gamma=0.97):
    online, target = q_network(), q_network()
    target.load_state_dict(online.state_dict())
    optimizer = torch.optim.RMSprop(online.parameters(), lr=5e-4)
    for update in range(updates):
        rows = torch.from_numpy(memory.sample(batch))
        state, after = rows[:, :STATE], rows[:, STATE:2 * STATE]
        action, reward = rows[:, -2].long(), rows[:, -1]
        with torch.no_grad():
            goal = reward + gamma * target(after).max(dim=1).values
        q = online(state).gather(1, action[:, None]).squeeze(1)
        loss = nn.functional.smooth_l1_loss(q, goal)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if update % 40 == 39:
            target.load_state_dict(online.state_dict())
            print(f"update {update + 1}: td error {loss.item():.4f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--packed", action="store_true")
    parser.add_argument("--updates", type=int, default=220)
    parser.add_argument("--batch", type=int, default=64)
    args = parser.parse_args()
    random.seed(4)
    torch.manual_seed(4)
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="replay"))
        record(folder, args.packed)
        learn(PackedReplay(folder) if args.packed else FolderReplay(folder), args.updates, args.batch)


if __name__ == "__main__":
    main()
