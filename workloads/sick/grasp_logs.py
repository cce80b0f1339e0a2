# truth: metadata_bound
# about: every moment of a robot's log is a file of its own; for each batch the loop looks through the episodes' folders, stats what it finds and opens hundreds of tiny files, and that costs far more than reading their 80 bytes
# also: small_reads data_loading_bound
# cure: --packed
# needs: torch
"""Imitation of a robot arm: the policy learns commands from joint states that a logger wrote, one file a moment."""
import argparse
import os
import tempfile
import time

import numpy as np
import torch
from torch import nn

EPISODES = 20
MOMENTS = 300
STATE = 14
COMMAND = 6
RECORD = (STATE + COMMAND) * 4


def log_episodes(root, generator):
    mixing = generator.standard_normal((STATE, COMMAND)).astype(np.float32) / 4
    for episode in range(EPISODES):
        folder = os.path.join(root, f"episode_{episode:03d}")
        os.mkdir(folder)
        states = np.cumsum(generator.standard_normal((MOMENTS, STATE)).astype(np.float32) * 0.1, axis=0)
        commands = np.tanh(states @ mixing)
        rows = np.concatenate([states, commands], axis=1).astype(np.float32)
        for moment, row in enumerate(rows):
            fd = os.open(os.path.join(folder, f"moment_{moment:05d}.f32"), os.O_WRONLY | os.O_CREAT)
            os.write(fd, row.tobytes())
            os.close(fd)


def finished(folder):
    """The moments of an episode that the logger has completed."""
    found = []
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if os.stat(path).st_size == RECORD:
            found.append(path)
    found.sort()
    return found


def read_moment(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        return os.read(fd, RECORD)
    finally:
        os.close(fd)


class Folders:
    """Batches out of the folders as the logger left them."""

    def __init__(self, root):
        self.root = root

    def batch(self, episodes, moments):
        rows = []
        for episode in episodes:
            paths = finished(os.path.join(self.root, f"episode_{episode:03d}"))
            rows.extend(read_moment(paths[moment]) for moment in moments)
        return np.frombuffer(b"".join(rows), np.float32).reshape(-1, STATE + COMMAND)


class Packed:
    """The same out of one file, written once."""

    def __init__(self, root):
        path = os.path.join(root, "all.f32")
        with open(path, "wb") as out:
            for episode in range(EPISODES):
                for moment in finished(os.path.join(root, f"episode_{episode:03d}")):
                    out.write(read_moment(moment))
        self.rows = np.fromfile(path, np.float32).reshape(EPISODES, MOMENTS, STATE + COMMAND)

    def batch(self, episodes, moments):
        return self.rows[np.ix_(episodes, moments)].reshape(-1, STATE + COMMAND)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--packed", action="store_true")
    parser.add_argument("--steps", type=int, default=500)
    options = parser.parse_args()
    torch.manual_seed(31)
    generator = np.random.default_rng(31)
    with tempfile.TemporaryDirectory() as root:
        log_episodes(root, generator)
        logs = (Packed if options.packed else Folders)(root)
        policy = nn.Sequential(nn.Linear(STATE, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, COMMAND))
        optimizer = torch.optim.SGD(policy.parameters(), lr=0.05, momentum=0.9)
        begin, cpu, average = time.perf_counter(), time.process_time(), 0.0
        for step in range(options.steps):
            rows = torch.from_numpy(logs.batch(generator.choice(EPISODES, 8, replace=False),
                                               generator.choice(MOMENTS, 64, replace=False)).copy())
            loss = (policy(rows[:, :STATE]) - rows[:, STATE:]).square().mean()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            average += (loss.item() - average) / min(step + 1, 50)
        spent = time.perf_counter() - begin
        print(f"loss {average:.4f}")
        print(f"{options.steps} steps, {spent / options.steps * 1e3:.1f} ms each, "
              f"{(time.process_time() - cpu) / options.steps * 1e3:.1f} ms of processor")


if __name__ == "__main__":
    main()
