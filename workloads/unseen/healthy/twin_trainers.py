# truth: none
# about: two processes train the same network on halves of equal size, one thread each, and average their gradients through shared memory after every step; nothing to gain
# needs: torch cores:2
import torch
import torch.multiprocessing as mp
from torch import nn
from torch.nn.utils import parameters_to_vector

RANKS, STEPS, BATCH = 2, 150, 48


def make_model():
    torch.manual_seed(21)
    return nn.Sequential(
        nn.Conv2d(3, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(24, 48, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(4),
        nn.Flatten(), nn.Linear(48 * 16, 10),
    )


def average_gradients(model, rank, board, barrier):
    board[rank] = parameters_to_vector([p.grad for p in model.parameters()])
    barrier.wait()
    mean = board.mean(0)
    barrier.wait()  # nobody writes before all have read
    at = 0
    for p in model.parameters():
        p.grad.copy_(mean[at : at + p.numel()].view_as(p))
        at += p.numel()


def train(rank, board, barrier):
    torch.set_num_threads(1)
    model = make_model()
    g = torch.Generator().manual_seed(100 + rank)
    images = torch.randn(480, 3, 32, 32, generator=g)
    labels = (images.mean((1, 2, 3)) > 0).long()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for step in range(STEPS):
        pick = torch.randperm(len(images), generator=g)[:BATCH]
        loss = nn.functional.cross_entropy(model(images[pick]), labels[pick])
        optimizer.zero_grad()
        loss.backward()
        average_gradients(model, rank, board, barrier)
        optimizer.step()
        if rank == 0 and step % 20 == 0:
            print(f"step {step}: {loss.item():.3f}")


def main():
    size = sum(p.numel() for p in make_model().parameters())
    board = torch.zeros(RANKS, size).share_memory_()
    barrier = mp.get_context("fork").Barrier(RANKS, timeout=100)
    workers = [mp.get_context("fork").Process(target=train, args=(r, board, barrier)) for r in range(RANKS)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()


if __name__ == "__main__":
    main()
