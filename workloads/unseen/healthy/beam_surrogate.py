# truth: none
# about: a wide network learns the deflection of beams from tensors in memory, without a loader; matrix products on all cores are nearly all of it
# needs: torch
"""A surrogate for a finite-element code: loads on a beam in, deflection at 128 places out."""
import os
import time

import torch
from torch import nn

PLACES, BEAMS, BATCH, STEPS = 128, 20000, 768, 70


def solve(loads):
    """The Green's function of a beam that lies on two supports, at PLACES places."""
    x = torch.linspace(0, 1, PLACES)
    a, b = torch.minimum(x[:, None], x[None]), 1 - torch.maximum(x[:, None], x[None])
    green = a * b * (1 - a * a - b * b) / 6
    return loads @ green


def main():
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    torch.manual_seed(70)
    loads = torch.randn(BEAMS, PLACES)
    sag = solve(loads)
    sag = sag / sag.std()
    model = nn.Sequential(nn.Linear(PLACES, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(),
                          nn.Linear(1024, PLACES))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    start = time.perf_counter()
    for step in range(STEPS):
        chosen = torch.randint(0, BEAMS, (BATCH,))
        loss = nn.functional.mse_loss(model(loads[chosen]), sag[chosen])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 20 == 19:
            print("step %d loss %.4f" % (step + 1, loss.item()))
    print("%d steps, %.1f ms per step" % (STEPS, 1e3 * (time.perf_counter() - start) / STEPS))


if __name__ == "__main__":
    main()
