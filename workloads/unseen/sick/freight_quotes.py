# truth: batch_too_small
# about: the price model learns from 4 quotes at a time, so nearly all of a step is the fixed cost of calling forward, backward and the optimizer
# cure: --batch 32
# whatif: batch=8
# gain: run
# needs: torch
"""Predicts the price of a freight quote from route, carrier and load."""
import argparse
import time

import torch
from torch import nn
from torch.nn import functional as F


class PriceModel(nn.Module):
    def __init__(self, ports=120, carriers=30):
        super().__init__()
        self.port = nn.Embedding(ports, 12)
        self.carrier = nn.Embedding(carriers, 8)
        self.hidden = nn.Linear(12 * 2 + 8 + 5, 64)
        self.middle = nn.Linear(64, 32)
        self.price = nn.Linear(32, 1)

    def forward(self, route, carrier, load):
        x = torch.cat([self.port(route).flatten(1), self.carrier(carrier), load], dim=1)
        x = F.relu(self.hidden(x))
        return self.price(F.relu(self.middle(x))).squeeze(1)


def quotes(count):
    route = torch.randint(120, (count, 2))
    carrier = torch.randint(30, (count,))
    load = torch.rand(count, 5)
    place = torch.rand(120, 2)
    distance = (place[route[:, 0]] - place[route[:, 1]]).norm(dim=1)
    price = distance * (1 + load[:, 0]) + 0.1 * torch.rand(30)[carrier] + 0.2 * load[:, 1] * load[:, 2]
    return route, carrier, load, price


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch", type=int, default=4)
    options = parser.parse_args()
    torch.manual_seed(77)

    route, carrier, load, price = quotes(16384)
    model = PriceModel()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01 * (options.batch / 4) ** 0.5)
    steps = 0
    began = time.perf_counter()
    for epoch in range(options.epochs):
        running = torch.zeros(())
        for rows in torch.randperm(len(price)).split(options.batch):
            loss = F.mse_loss(model(route[rows], carrier[rows], load[rows]), price[rows])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            running += loss.detach()
            steps += 1
        print(f"epoch {epoch}: loss {running.item() * options.batch / len(price):.4f}")
    took = time.perf_counter() - began
    print(f"{steps} steps, {1000 * took / steps:.3f} ms each, {took:.2f} s")


if __name__ == "__main__":
    main()
