# truth: worker_memory_growth
# about: the readings are a long Python list of dicts; each of the forked workers touches the reference counts of what it reads, so page after page of the parent's memory is copied into every worker
# also: memory_pressure memory_leak too_many_workers
# cure: cured/tariff_households.py
# gain: none
# needs: torch numpy
"""Which tariff suits a household?  A mean day in half-hours (kWh) and a few facts about each."""
import argparse
import random
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def read_households(n, seed=23):
    rnd = random.Random(seed)
    out = []
    for i in range(n):
        people = rnd.randint(1, 6)
        pump = rnd.random() < 0.3
        day = [(0.05 * people + (0.25 if pump and h < 14 else 0.03)) * (0.7 + 0.6 * rnd.random()) for h in range(48)]
        out.append({"id": "HH-%07d" % i, "people": float(people), "area": rnd.uniform(30, 220), "day": day,
                    "tariff": int(pump) * 2 + int(people > 3)})
    return out


class Households(Dataset):
    def __init__(self, n):
        self.rows = read_households(n)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        row = self.rows[i]
        facts = [row["people"] / 6, row["area"] / 200] + [h / 0.5 for h in row["day"]]
        return torch.tensor(facts), row["tariff"]


class Trainer:
    def __init__(self, net, loader, lr=0.02):
        self.net, self.loader = net, loader
        self.opt = torch.optim.SGD(net.parameters(), lr, momentum=0.9)
        self.loss = nn.CrossEntropyLoss()

    def fit(self, epochs):
        for epoch in range(epochs):
            total, began = 0.0, time.perf_counter()
            for x, y in self.loader:
                loss = self.loss(self.net(x), y)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                total += loss.item()
            print("epoch %d: loss %.4f, %.1f s" % (epoch, total / len(self.loader), time.perf_counter() - began))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--households", type=int, default=120000)
    ap.add_argument("--epochs", type=int, default=1)
    args = ap.parse_args()
    torch.manual_seed(23)
    torch.set_num_threads(1)
    loader = DataLoader(Households(args.households), batch_size=256, shuffle=True, num_workers=2, multiprocessing_context="fork",
                        persistent_workers=True)
    net = nn.Sequential(nn.Linear(50, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 4))
    Trainer(net, loader).fit(args.epochs)


if __name__ == "__main__":
    main()
