# truth: oversubscribed
# about: two members of a committee train at once in two processes, and each computes with eight threads as on the author's big node; sixteen threads take turns on two cores and wait for each other at the end of every operation
# also: sync_stall
# cure: --threads 1
# whatif: threads=1
# needs: torch numpy
"""A committee of potentials for liquid argon: each member is fitted to its own bootstrap sample; where they disagree, more
reference energies have to be computed."""
import argparse
import multiprocessing as mp
import time

import numpy as np
import torch
import torch.nn.functional as F


def clusters(count, atoms, seed):
    """Radial symmetry functions of every atom, and Lennard-Jones energies."""
    rng = np.random.default_rng(seed)
    grid = np.stack(np.meshgrid(*[np.arange(3)] * 3), -1).reshape(-1, 3)[:atoms] * 1.12
    at = grid + rng.normal(0, 0.06, (count, atoms, 3))
    dist = np.linalg.norm(at[:, :, None] - at[:, None], axis=-1) + 10 * np.eye(atoms)
    energy = 2 * (dist ** -12 - dist ** -6).sum((1, 2))
    centres = np.linspace(0.8, 3.5, 24)
    feats = np.exp(-8 * (dist[..., None] - centres) ** 2).sum(2)
    return torch.tensor(feats, dtype=torch.float32), torch.tensor((energy - energy.mean()) / energy.std(), dtype=torch.float32)


class AtomicNet(torch.nn.Module):
    def __init__(self, feats, width):
        super().__init__()
        self.first = torch.nn.Linear(feats, width)
        self.inner = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(4))
        self.last = torch.nn.Linear(width, 1)

    def forward(self, g):
        h = torch.tanh(self.first(g))
        for layer in self.inner:
            h = h + torch.tanh(layer(h))
        return self.last(h).squeeze(-1).sum(-1)


def fit_member(rank, opts, results):
    torch.set_num_threads(opts.threads)
    torch.manual_seed(700 + rank)
    feats, energy = clusters(1500, 18, seed=3)
    sample = torch.randint(len(feats), (len(feats),))
    net = AtomicNet(feats.shape[-1], opts.width)
    optim = torch.optim.Adam(net.parameters(), 5e-4)
    began = time.perf_counter()
    for step in range(opts.steps):
        pick = sample[torch.randint(len(sample), (opts.batch,))]
        loss = F.mse_loss(net(feats[pick]), energy[pick])
        optim.zero_grad()
        loss.backward()
        optim.step()
    took = time.perf_counter() - began
    with torch.no_grad():
        probe = net(feats[:32]).numpy()
    results.put((rank, loss.item(), 1e3 * took / opts.steps, probe))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--threads", type=int, default=8)
    ap.add_argument("--members", type=int, default=2)
    ap.add_argument("--steps", type=int, default=200)
    ap.add_argument("--batch", type=int, default=64)
    ap.add_argument("--width", type=int, default=128)
    opts = ap.parse_args()
    results = mp.Queue()
    others = [mp.Process(target=fit_member, args=(rank, opts, results)) for rank in range(1, opts.members)]
    for p in others:
        p.start()
    fit_member(0, opts, results)
    got = [results.get() for _ in range(opts.members)]
    for p in others:
        p.join()
    for rank, loss, ms, _ in sorted(got, key=lambda g: g[0]):
        print("member %d: loss %.4f, %.2f ms per step" % (rank, loss, ms))
    print("disagreement %.4f" % np.std([g[3] for g in got], axis=0).mean())


if __name__ == "__main__":
    main()
