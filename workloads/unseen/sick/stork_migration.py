# truth: memory_leak
# about: the features of each jittered track are kept in a dictionary under the track and its jitter, but the jitter is new each time, so nothing is ever found there and the dictionary grows by some 3 MB a step until the end
# cure: cured/stork_migration.py
# gain: none
# env: OMP_NUM_THREADS=1
# needs: torch numpy
"""Where will a tagged stork be tomorrow? Tracks of GPS tags, jittered, as features over several scales."""
import numpy as np
import torch
from torch import nn

FIXES = 240
SCALES = (1, 2, 4, 8, 16, 32)


class TrackFeatures:
    """Displacement, speed and turning of a track over several scales, with a memory of what was computed."""

    def __init__(self, tracks):
        self.tracks = tracks
        self.known = {}

    def get(self, bird, jitter):
        key = (bird, jitter)
        if key not in self.known:
            self.known[key] = self.compute(self.tracks[bird], jitter)
        return self.known[key]

    @staticmethod
    def compute(track, jitter):
        track = track + np.float32(jitter) * np.sin(np.arange(FIXES, dtype=np.float32))[:, None]
        rows = []
        for scale in SCALES:
            move = np.zeros_like(track)
            move[scale:] = track[scale:] - track[:-scale]
            speed = np.hypot(move[:, 0], move[:, 1])
            turn = np.arctan2(move[:, 1], move[:, 0])
            rows += [move[:, 0], move[:, 1], speed, np.sin(turn), np.cos(turn), speed / scale]
        return np.stack(rows)


class Flyway(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(nn.Conv1d(6 * len(SCALES), 64, 7, stride=2), nn.SiLU(),
                                    nn.Conv1d(64, 96, 7, stride=2), nn.SiLU())
        self.where = nn.Linear(96, 2)

    def forward(self, features):
        return self.where(self.encode(features).mean(2))


def tagged_storks(birds, rng):
    heading = rng.uniform(-np.pi, np.pi, size=(birds, 1)) + np.cumsum(rng.normal(0, 0.05, (birds, FIXES + 24)), 1)
    pace = rng.gamma(4.0, 0.1, size=(birds, 1))
    steps = np.stack([pace * np.cos(heading), pace * np.sin(heading)], 2)
    path = np.cumsum(steps, 1).astype(np.float32)
    return path[:, :FIXES] - path[:, FIXES - 1:FIXES], path[:, -1] - path[:, FIXES - 1]


def main():
    torch.manual_seed(19)
    rng = np.random.default_rng(19)
    tracks, tomorrow = tagged_storks(600, rng)
    features = TrackFeatures(tracks)
    model = Flyway()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=4e-3, total_steps=260)
    for step in range(260):
        birds = rng.choice(len(tracks), 80, replace=False)
        x = np.stack([features.get(int(bird), float(rng.normal(0, 0.05))) for bird in birds])
        loss = nn.functional.huber_loss(model(torch.from_numpy(x)), torch.from_numpy(tomorrow[birds]))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 65 == 64:
            print("step", step + 1, "huber %.4f" % loss.item())


main()
