# truth: gc_pauses
# about: gc.collect() after every step, once put there against a full memory, walks through some 600 000 live Python objects of the data set each time and frees nothing
# cure: --collect-every 100
# whatif: gc=100
# needs: torch
"""Insurance claims by priority: claims are Python objects with their lists of codes, a bag of embeddings ranks them."""
import argparse
import gc
import random
import time

import torch
from torch import nn

CODES = 2000


class Claim:
    __slots__ = ("amount", "age", "codes", "urgent")

    def __init__(self, amount, age, codes, urgent):
        self.amount = amount
        self.age = age
        self.codes = codes
        self.urgent = urgent


def claims(count, chance):
    made = []
    draw = chance.random
    for _ in range(count):
        amount = draw()
        codes = [int(draw() * CODES), int(draw() * CODES), int(draw() * CODES), int(draw() * CODES)]
        urgent = 1.0 if amount + codes[0] / CODES + 0.2 * draw() > 1.1 else 0.0
        made.append(Claim(amount, draw(), codes, urgent))
    return made


class Triage(nn.Module):
    def __init__(self):
        super().__init__()
        self.codes = nn.EmbeddingBag(CODES, 48, mode="mean")
        self.rest = nn.Sequential(nn.Linear(50, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 1))

    def forward(self, codes, numbers):
        return self.rest(torch.cat([self.codes(codes), numbers], dim=1)).squeeze(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--collect-every", type=int, default=1)
    parser.add_argument("--steps", type=int, default=120)
    options = parser.parse_args()
    torch.manual_seed(4)
    chance = random.Random(4)
    data = claims(300_000, chance)
    model = Triage()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.02)
    loss_of = nn.BCEWithLogitsLoss()
    begin, cpu, average = time.perf_counter(), time.process_time(), 0.0
    for step in range(1, options.steps + 1):
        batch = chance.choices(data, k=512)
        codes = torch.tensor([c.codes for c in batch])
        numbers = torch.tensor([(c.amount, c.age) for c in batch])
        urgent = torch.tensor([c.urgent for c in batch])
        loss = loss_of(model(codes, numbers), urgent)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        average += 0.1 * (loss.item() - average)
        if step % options.collect_every == 0:
            gc.collect()
    print(f"loss {average:.3f}")
    print(f"{options.steps} steps, {(time.perf_counter() - begin) / options.steps * 1e3:.1f} ms each, "
          f"{(time.process_time() - cpu) / options.steps * 1e3:.1f} ms of processor")


if __name__ == "__main__":
    main()
