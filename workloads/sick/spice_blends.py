# truth: communication_bound
# about: two ranks exchange 33 MB of weights to average them after every batch of eight; computing the batch takes a fraction of the exchange
# also: sync_stall batch_too_small
# cure: --average-every 8
# whatif: exchange=8
# needs: torch
"""Which spices go together: a wide ingredient model, two ranks that average their weights over gloo."""
import os

os.environ["OMP_NUM_THREADS"] = "1"  # two ranks share this machine

import argparse
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

SPICES, WIDE, RANKS = 2000, 1500, 2


class Blender(nn.Module):
    def __init__(self):
        super().__init__()
        self.inside = nn.Linear(SPICES, WIDE)
        self.mix = nn.Linear(WIDE, WIDE)
        self.out = nn.Linear(WIDE, SPICES)

    def forward(self, x):
        x = torch.relu(self.inside(x))
        return self.out(torch.relu(self.mix(x)))


@torch.no_grad()
def agree(model):
    """Both ranks go on with the mean of their weights."""
    for weight in model.parameters():
        dist.all_reduce(weight)
        weight.div_(RANKS)


def train(rank, options, meeting):
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=RANKS)
    torch.manual_seed(17)
    model = Blender()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    dice = torch.Generator().manual_seed(100 + rank)
    began, cpu = time.perf_counter(), time.process_time()
    for step in range(1, options.steps + 1):
        recipes = (torch.rand(8, SPICES, generator=dice) < 0.01).float()
        hidden = recipes * (torch.rand(8, SPICES, generator=dice) < 0.7).float()
        loss = nn.functional.binary_cross_entropy_with_logits(model(hidden), recipes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % options.average_every == 0:
            agree(model)
    took = time.perf_counter() - began
    if rank == 0:
        print(f"loss {loss.item():.4f}; {1000 * took / options.steps:.1f} ms a step, "
              f"{time.process_time() - cpu:.1f} s of CPU, {took:.2f} s")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--average-every", type=int, default=1)
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(train, args=(parser.parse_args(), os.path.join(folder, "meeting")), nprocs=RANKS)
