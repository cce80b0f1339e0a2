# truth: oversubscribed
# about: evolution strategies for a power kite: four simulator processes each run their rollouts with eight torch threads ("--threads 8" from the big server), so 32 threads fight over the few cores and wait for each other at every parallel loop
# also: sync_stall
# cure: --threads 1
# whatif: threads=1
# needs: torch numpy
"""Learns the steering of a power kite by evolution strategies.

Four simulator processes fly antithetic perturbations of the policy through a field of gusts;
the main process turns their scores into a gradient and lets Adam take the step.
"""
import argparse
import multiprocessing as mp
import os
import time

parser = argparse.ArgumentParser()
parser.add_argument("--threads", type=int, default=8, help="threads of each simulator")
parser.add_argument("--simulators", type=int, default=4)
parser.add_argument("--steps", type=int, default=100)
parser.add_argument("--pairs", type=int, default=4)
args = parser.parse_args()
os.environ["OMP_NUM_THREADS"] = str(args.threads)       # before numpy and torch load their libraries

import numpy as np
import torch

OBS, HIDDEN, ACT = 12, 64, 3
SHAPES = [(OBS, HIDDEN), (HIDDEN,), (HIDDEN, ACT), (ACT,)]
SIZE = sum(int(np.prod(s)) for s in SHAPES)
KITES, TICKS, SIGMA = 2048, 12, 0.05

_field = None


def start_simulator(threads, seed):
    global _field
    torch.set_num_threads(threads)
    g = torch.Generator().manual_seed(seed)
    _field = {
        "start": torch.randn(KITES, OBS, generator=g),
        "gusts": 0.1 * torch.randn(TICKS, KITES, OBS, generator=g),
        "drift": 0.2 * torch.randn(OBS, OBS, generator=g),
        "lines": 0.3 * torch.randn(ACT, OBS, generator=g),
    }


def unflatten(flat):
    out, at = [], 0
    for shape in SHAPES:
        n = int(np.prod(shape))
        out.append(flat[at:at + n].view(shape))
        at += n
    return out


@torch.no_grad()
def fly(job):
    flat, noise_seed, sign = job
    g = torch.Generator().manual_seed(noise_seed)
    w1, b1, w2, b2 = unflatten(torch.from_numpy(flat) + sign * SIGMA * torch.randn(SIZE, generator=g))
    state = _field["start"].clone()
    power = torch.zeros(KITES)
    for tick in range(TICKS):
        hidden = (state @ w1).add_(b1).clamp_(-1, 1)
        act = (hidden @ w2).add_(b2).clamp_(-1, 1)
        state = (state @ _field["drift"] + act @ _field["lines"] + _field["gusts"][tick]).clamp_(-2, 2)
        power += state[:, 0] - 0.1 * act.square().sum(1) - 0.05 * state[:, 1:4].square().sum(1)
    return float(power.mean())


def main():
    torch.manual_seed(5)
    torch.set_num_threads(1)
    policy = torch.nn.Parameter(0.1 * torch.randn(SIZE))
    optimizer = torch.optim.Adam([policy], lr=0.02)
    rng = np.random.default_rng(5)
    with mp.get_context("fork").Pool(args.simulators, start_simulator, (args.threads, 77)) as pool:
        began = time.perf_counter()
        for step in range(args.steps):
            flat = policy.detach().numpy().copy()
            seeds = rng.integers(0, 2**31, args.pairs).tolist()
            jobs = [(flat, s, sign) for s in seeds for sign in (1.0, -1.0)]
            scores = np.array(pool.map(fly, jobs, chunksize=1))
            gain = scores[0::2] - scores[1::2]
            gain /= gain.std() + 1e-8
            grad = torch.zeros(SIZE)
            for s, k in zip(seeds, gain):
                grad -= float(k) * torch.randn(SIZE, generator=torch.Generator().manual_seed(s))
            optimizer.zero_grad()
            policy.grad = grad / args.pairs
            optimizer.step()
            if step % 25 == 24:
                print(f"step {step + 1} mean power {scores.mean():.3f}")
        took = time.perf_counter() - began
    print(f"{args.steps} steps, {1000 * took / args.steps:.1f} ms a step")


if __name__ == "__main__":
    main()
