# truth: communication_bound
# about: two trainers average all their weights (two wide embedding tables among them) over gloo after every single step, and that takes far longer than the step itself
# also: sync_stall
# cure: --average-every 8
# whatif: exchange=8
# needs: torch numpy
"""Which garments are worn together? Two towers on outfits, trained by two processes."""
import argparse
import os
import socket

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F

RANKS = 2
GARMENTS = 80000
WIDTH = 64


class Towers(nn.Module):
    def __init__(self):
        super().__init__()
        self.top = nn.EmbeddingBag(GARMENTS, WIDTH, mode="mean", sparse=True)
        self.bottom = nn.EmbeddingBag(GARMENTS, WIDTH, mode="mean", sparse=True)
        self.left = nn.Sequential(nn.Linear(WIDTH, 256), nn.ReLU(), nn.Linear(256, 64))
        self.right = nn.Sequential(nn.Linear(WIDTH, 256), nn.ReLU(), nn.Linear(256, 64))

    def forward(self, a, b):
        u = F.normalize(self.left(self.top(a)), dim=1)
        v = F.normalize(self.right(self.bottom(b)), dim=1)
        return u @ v.t() * 10.0


@torch.no_grad()
def average_weights(model):
    for p in model.parameters():
        dist.all_reduce(p.data)
        p.data /= RANKS


def outfits(rank, count):
    rng = np.random.default_rng(100 + rank)
    for _ in range(count):
        style = rng.integers(0, GARMENTS // 50, (128, 1))
        tops = (style * 50 + rng.integers(0, 50, (128, 12))) % GARMENTS
        bottoms = (style * 50 + rng.integers(0, 50, (128, 12))) % GARMENTS
        yield torch.from_numpy(tops), torch.from_numpy(bottoms)


def trainer(rank, port, args):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(port)
    dist.init_process_group("gloo", rank=rank, world_size=RANKS)
    torch.set_num_threads(1)
    torch.manual_seed(6)
    model = Towers()
    opt = torch.optim.SGD(model.parameters(), lr=0.5)
    for step, (a, b) in enumerate(outfits(rank, args.steps), 1):
        score = model(a, b)
        loss = F.cross_entropy(score, torch.arange(len(a)))
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % args.average_every == 0:
            average_weights(model)
        if rank == 0 and step % 32 == 0:
            print(f"step {step}  loss {loss.item():.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--average-every", type=int, default=1)
    ap.add_argument("--steps", type=int, default=120)
    mp.spawn(trainer, args=(free_port(), ap.parse_args()), nprocs=RANKS)
