# truth: none
# about: healthy: graph network with attention over the stations, the days are one tensor on which the batches are cut as views, all time is in products and convolutions
# env: OPENBLAS_NUM_THREADS=2
# needs: torch
"""Bikes that will stand at each dock in an hour: attention over stations, convolution over time."""
import argparse

import torch
from torch import nn

STATIONS, HOURS, DAYS = 120, 24, 320


def year(seed):
    g = torch.Generator().manual_seed(seed)
    near = torch.rand(STATIONS, 2, generator=g)
    pull = torch.softmax(-torch.cdist(near, near) * 6, 1)
    bikes = torch.randn(DAYS, STATIONS, HOURS + 1, generator=g)
    bikes = 0.6 * bikes + 0.4 * torch.einsum("st,dth->dsh", pull, bikes.roll(1, 2))
    return bikes


class Stations(nn.Module):
    def __init__(self, width=128, heads=4):
        super().__init__()
        self.clock = nn.Conv1d(1, width, 5, stride=2, padding=2)
        self.clock2 = nn.Conv1d(width, width, 5, stride=2, padding=2)
        self.who = nn.Parameter(torch.randn(STATIONS, width) * 0.02)
        self.talk = nn.ModuleList(nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, batch_first=True) for _ in range(2))
        self.dock = nn.Linear(width, 1)

    def forward(self, day):
        b = day.shape[0]
        h = torch.relu(self.clock2(torch.relu(self.clock(day.reshape(b * STATIONS, 1, HOURS))))).mean(2)
        h = h.view(b, STATIONS, -1) + self.who
        for layer in self.talk:
            h = layer(h)
        return self.dock(h).squeeze(2)


def batches(data, size, epochs):
    g = torch.Generator().manual_seed(7)
    for epoch in range(epochs):
        data = data[torch.randperm(len(data), generator=g)]
        for part in data.split(size):
            yield epoch, part[..., :HOURS], part[..., HOURS]


CONFIG = {"size": 16, "epochs": 4, "lr": 5e-4}

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=CONFIG["epochs"])
    CONFIG["epochs"] = parser.parse_args().epochs
    torch.set_num_threads(2)
    torch.manual_seed(0)
    net = Stations()
    optimizer = torch.optim.Adam(net.parameters(), lr=CONFIG["lr"])
    last = None
    for epoch, day, soon in batches(year(3), CONFIG["size"], CONFIG["epochs"]):
        loss = nn.functional.l1_loss(net(day), soon)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if epoch != last:
            print(f"epoch {epoch}: {loss.item():.4f}")
            last = epoch
