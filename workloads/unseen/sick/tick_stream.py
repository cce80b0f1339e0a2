# truth: logging_stall
# about: in every step the state of each unit of the network goes to the log file as a line of its own, hundreds of formatted and flushed records a step, which take several times as long as the training
# whatif: logging=25
# cure: --watch 25
# env: OPENBLAS_NUM_THREADS=1
# needs: torch
"""Direction of the next tick of an exchange rate, from the last 32 ticks."""
import argparse
import logging
import os
import tempfile

import torch
from torch import nn

log = logging.getLogger("ticks")


def setup(path):
    handler = logging.FileHandler(path)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(funcName)s:%(lineno)d %(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    log.propagate = False
    return handler


def watch(step, model):
    for name, p in model.named_parameters():
        if p.dim() != 2:
            continue
        weight, grad = p.detach().norm(dim=1).tolist(), p.grad.norm(dim=1).tolist()
        for unit, (w, d) in enumerate(zip(weight, grad)):
            log.debug("step %d %s unit %d weight %.6f gradient %.6f", step, name, unit, w, d)


def ticks(count, seed):
    g = torch.Generator().manual_seed(seed)
    moves = torch.randn(count, 33, 3, generator=g)
    moves[:, 32, 0] += moves[:, 31, 0] - 0.5 * moves[:, 30, 1]
    return moves[:, :32].flatten(1), (moves[:, 32, 0] > 0).float()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--watch", type=int, default=1)
    p.add_argument("--steps", type=int, default=700)
    a = p.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rates, up = ticks(16_384, 1)
    model = nn.Sequential(nn.Linear(96, 224), nn.Tanh(), nn.Linear(224, 224), nn.Tanh(), nn.Linear(224, 224), nn.Tanh(), nn.Linear(224, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    order = torch.Generator().manual_seed(2)
    with tempfile.TemporaryDirectory() as folder:
        handler = setup(os.path.join(folder, "ticks.log"))
        for step in range(a.steps):
            rows = torch.randint(0, len(up), (160,), generator=order)
            loss = nn.functional.binary_cross_entropy_with_logits(model(rates[rows]).squeeze(1), up[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % a.watch == 0:
                watch(step, model)
        print(f"loss {loss.item():.4f}, log of {os.path.getsize(os.path.join(folder, 'ticks.log')) >> 10} KiB")
        log.removeHandler(handler)
        handler.close()


if __name__ == "__main__":
    main()
