# Truth (tests/system/test_training_scripts.py reads it):
#   launch torchrun 2
#   steps 16                      of rank 0: 2 epochs of 8 batches
#   optimizer_steps 16
#   epochs 2
#   samples 128
#   ranks 2
#   phases data_loading forward backward optimizer checkpoint
#   larger backward 1 optimizer    it also waits for the other rank
"""DistributedDataParallel on CPUs: torchrun --nproc_per_node=2 ddp_gloo.py"""
import io
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    assert rank == int(os.environ["RANK"])
    torch.manual_seed(0)
    torch.set_num_threads(1)

    g = torch.Generator().manual_seed(1)
    dataset = TensorDataset(torch.randn(128, 64, generator=g), torch.randn(128, 1, generator=g))
    sampler = DistributedSampler(dataset, num_replicas=world, rank=rank)
    loader = DataLoader(dataset, batch_size=8, sampler=sampler)
    model = DDP(nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    for epoch in range(2):
        sampler.set_epoch(epoch)
        total = torch.zeros(1)
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        dist.all_reduce(total)
        if rank == 0:
            print(f"epoch {epoch}: loss {total.item() / world / len(loader):.6f}", flush=True)
            torch.save(model.module.state_dict(), io.BytesIO())
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
