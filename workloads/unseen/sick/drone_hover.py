#!/usr/bin/env python3
# truth: logging_stall
# about: in every step a line for each drone and each tenth of a second goes through logging to a file that is flushed line by line, which takes longer than the update of the policy
# cure: --log-every 20
# whatif: logging=20
# needs: torch numpy
"""Hovering drones: a policy learned through a differentiable flight model, 128 of them at a time.

The flight log (where each drone was, how far it was from its place, what the motor did) is for the
plots of the lab's page.
"""
import argparse
import logging
import os
import tempfile
import time

import numpy as np
import torch
from torch import nn

DRONES, HORIZON, STEPS = 128, 8, 380
log = logging.getLogger("flight")


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, 3))

    def forward(self, state):
        return torch.tanh(self.net(state)) * 4


def fly(policy, state, wind):
    """Cost of HORIZON tenths of a second in the air, and what is worth noting of each of them."""
    cost, notes = 0.0, []
    for _ in range(HORIZON):
        thrust = policy(state)
        speed = state[:, 3:] * 0.97 + 0.1 * (thrust + wind)
        place = state[:, :3] + 0.1 * speed
        state = torch.cat([place, speed], 1)
        paid = place.pow(2).sum(1) + 0.01 * thrust.pow(2).sum(1)
        cost = cost + paid.mean()
        notes.append((paid.detach(), place.detach(), thrust.detach()))
    return cost / HORIZON, notes


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--log-every", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(12)
    rng = np.random.default_rng(12)
    with tempfile.TemporaryDirectory(prefix="hover_") as folder:
        handler = logging.FileHandler(os.path.join(folder, "flight.log"))
        handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
        log.addHandler(handler)
        log.setLevel(logging.INFO)
        policy = Policy()
        optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
        begin = time.perf_counter()
        for step in range(STEPS):
            start = torch.from_numpy(rng.normal(0, 1, (DRONES, 6)).astype(np.float32))
            wind = torch.from_numpy(rng.normal(0, 0.3, (DRONES, 3)).astype(np.float32))
            loss, notes = fly(policy, start, wind)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % args.log_every == 0:
                for tenth, (paid, place, thrust) in enumerate(notes):
                    for drone, (c, s, t) in enumerate(zip(paid.tolist(), place.tolist(), thrust.tolist())):
                        log.info("step %d.%d drone %d cost %.4f at %.3f %.3f %.3f thrust %.3f %.3f %.3f",
                                 step, tenth, drone, c, s[0], s[1], s[2], t[0], t[1], t[2])
        seconds = time.perf_counter() - begin
        log.removeHandler(handler)
        handler.close()
    print(f"mean cost at the end {loss.item():.3f}")
    print(f"{STEPS} steps in {seconds:.2f} s, {1000 * seconds / STEPS:.1f} ms a step")


if __name__ == "__main__":
    main()
