# truth: evaluation_heavy
# about: after every fourth batch all twelve thousand held-out flights are scored to see whether the model is the best so far; that takes several times what the four batches take
# cure: --check-every 40
# whatif: evaluation=10
# gain: run
# needs: torch
"""How many seats of a flight will be sold? Embeddings of route and carrier and a gated net, tensors in memory."""
import argparse
import copy
import time

import torch
from torch import nn

ROUTES, CARRIERS, NUMBERS = 800, 40, 32


def flights(count, generator):
    routes = torch.randint(0, ROUTES, (count,), generator=generator)
    carriers = torch.randint(0, CARRIERS, (count,), generator=generator)
    numbers = torch.randn(count, NUMBERS, generator=generator)
    sold = torch.sigmoid(numbers[:, 0] + 0.5 * numbers[:, 1] + torch.sin(routes.float()))
    return routes, carriers, numbers, sold


class Demand(nn.Module):
    def __init__(self, width=384):
        super().__init__()
        self.route = nn.Embedding(ROUTES, 24)
        self.carrier = nn.Embedding(CARRIERS, 8)
        self.enter = nn.Linear(24 + 8 + NUMBERS, width)
        self.gates = nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(3))
        self.leave = nn.Linear(width, 1)

    def forward(self, routes, carriers, numbers):
        state = self.enter(torch.cat([self.route(routes), self.carrier(carriers), numbers], 1))
        for gate in self.gates:
            state = state + nn.functional.glu(gate(state))
        return torch.sigmoid(self.leave(state)).squeeze(1)


def rows(table, chosen):
    return [column[chosen] for column in table]


def held_out_error(model, table, size=1000):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for first in range(0, len(table[0]), size):
            routes, carriers, numbers, sold = rows(table, slice(first, first + size))
            total += (model(routes, carriers, numbers) - sold).abs().sum().item()
    model.train()
    return total / len(table[0])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check-every", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(77)
    generator = torch.Generator().manual_seed(77)
    train, held_out = flights(40000, generator), flights(12000, generator)
    model = Demand()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    best, kept, checking, start = 1.0, None, 0.0, time.perf_counter()
    steps = 120
    for step in range(1, steps + 1):
        routes, carriers, numbers, sold = rows(
            train, torch.randint(0, 40000, (384,), generator=generator))
        loss = nn.functional.binary_cross_entropy(model(routes, carriers, numbers), sold)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % args.check_every == 0:
            before = time.perf_counter()
            error = held_out_error(model, held_out)
            checking += time.perf_counter() - before
            if error < best:
                best, kept = error, copy.deepcopy(model.state_dict())
    spent = time.perf_counter() - start
    print("best error %.4f, %d tensors kept" % (best, len(kept)))
    print("%d steps, %.1f ms per step, %.1f of it checking"
          % (steps, 1e3 * spent / steps, 1e3 * checking / steps))


if __name__ == "__main__":
    main()
