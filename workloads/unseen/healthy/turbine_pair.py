# truth: none
# about: two processes train one regression of wind turbines' power together, without locks (Hogwild): the weights lie in shared memory, each has its own half of the data in memory and half of the cores
# needs: torch
"""The power curve of wind turbines, trained by two processes that share the weights."""
import os
import time

import torch
import torch.multiprocessing as mp
from torch import nn

ROWS, FEATURES, STEPS, BATCH = 30_000, 24, 150, 512


def half(rank):
    gen = torch.Generator().manual_seed(100 + rank)
    x = torch.randn(ROWS, FEATURES, generator=gen)
    wind = 8 + 3 * x[:, 0]
    power = torch.sigmoid((wind - 7) / 1.5) * (1 - 0.1 * x[:, 1].abs()) + 0.05 * torch.sin(3 * x[:, 2])
    return x, power + 0.02 * torch.randn(ROWS, generator=gen)


def network():
    return nn.Sequential(nn.Linear(FEATURES, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
                         nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1))


def train(rank, model, threads):
    torch.set_num_threads(threads)
    torch.manual_seed(rank)
    x, power = half(rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03)
    begin, total = time.perf_counter(), 0.0
    for step in range(1, STEPS + 1):
        pick = torch.randint(0, ROWS, (BATCH,))
        loss = nn.functional.mse_loss(model(x[pick]).squeeze(1), power[pick])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        total = total + loss.detach()
        if step % 50 == 0:
            print(f"process {rank}, step {step}: loss {float(total) / step:.4f}", flush=True)
    took = time.perf_counter() - begin
    print(f"process {rank}: {STEPS} steps, {took:.2f} s, {1e3 * took / STEPS:.1f} ms a step", flush=True)


def main():
    threads = max(1, len(os.sched_getaffinity(0)) // 2)
    torch.manual_seed(0)
    model = network()
    model.share_memory()
    other = mp.get_context("spawn").Process(target=train, args=(1, model, threads))
    other.start()
    train(0, model, threads)
    other.join()
    if other.exitcode:
        raise SystemExit(other.exitcode)


if __name__ == "__main__":
    main()
