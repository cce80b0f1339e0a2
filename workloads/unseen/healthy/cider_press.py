# truth: none
# about: a recurrent network whose matrix products take nearly all of the time; data lie in memory, batches are of a good size
# needs: torch numpy
"""Foretells the pressure in a cider press from the last minute of its sensors."""
import argparse
import os
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SENSORS = 16


def press(path, seconds, seed):
    rng = np.random.default_rng(seed)
    time = np.arange(seconds)[:, None]
    waves = np.sin(time / rng.uniform(5, 60, SENSORS) + rng.uniform(0, 6, SENSORS))
    np.save(path, (waves + rng.normal(0, 0.1, waves.shape)).astype(np.float32))


class Minutes(Dataset):
    def __init__(self, path, length, stride):
        self.readings = torch.from_numpy(np.load(path))
        self.length = length
        self.stride = stride

    def __len__(self):
        return (len(self.readings) - self.length - 1) // self.stride + 1

    def __getitem__(self, number):
        begin = number * self.stride
        return self.readings[begin:begin + self.length], self.readings[begin + self.length]


class Gauge(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.memory = nn.LSTM(SENSORS, width, batch_first=True)
        self.out = nn.Linear(width, SENSORS)

    def forward(self, readings):
        states, _ = self.memory(readings)
        return self.out(states[:, -1])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=8800)
    parser.add_argument("--length", type=int, default=48)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()

    torch.manual_seed(19)
    with tempfile.TemporaryDirectory(prefix="cider") as folder:
        path = os.path.join(folder, "season.npy")
        press(path, args.seconds, seed=19)
        minutes = Minutes(path, args.length, stride=2)
    loader = DataLoader(minutes, batch_size=args.batch, shuffle=True, drop_last=True)
    model = Gauge(args.width)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        total = 0.0
        for readings, following in loader:
            optimizer.zero_grad(set_to_none=True)
            loss = nn.functional.mse_loss(model(readings), following)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch + 1}: {total / len(loader):.5f}")


if __name__ == "__main__":
    main()
