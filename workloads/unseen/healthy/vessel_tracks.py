# truth: none
# about: a GRU on tracks of vessels, read by one worker from large files (a window is one read) and well ahead of the steps
# needs: torch numpy
"""Where will the vessel be in ten minutes? Windows from day files of positions."""
import argparse
import os
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

WINDOW, COLUMNS = 48, 5


class DayFiles(Dataset):
    def __init__(self, folder):
        names = sorted(os.listdir(folder))
        self.days = [np.load(os.path.join(folder, name), mmap_mode="r") for name in names]
        self.each = len(self.days[0]) // (WINDOW + 1)

    def __len__(self):
        return len(self.days) * self.each

    def __getitem__(self, i):
        day, k = divmod(i, self.each)
        rows = np.array(self.days[day][k * (WINDOW + 1):(k + 1) * (WINDOW + 1)])
        return torch.from_numpy(rows[:WINDOW]), torch.from_numpy(rows[WINDOW, :2] - rows[WINDOW - 1, :2])


class Course(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(COLUMNS, 96, num_layers=2, batch_first=True)
        self.where = nn.Linear(96, 2)

    def forward(self, track):
        out, _ = self.gru(track - track[:, :1])
        return self.where(out[:, -1])


def sail(folder, days, rows):
    rng = np.random.default_rng(31)
    for day in range(days):
        turn = np.cumsum(rng.normal(0, 0.03, rows))
        speed = 1 + 0.2 * np.sin(np.arange(rows) / 300)
        step = np.stack([speed * np.cos(turn), speed * np.sin(turn)], 1)
        table = np.concatenate([0.1 * np.cumsum(step, 0), step, speed[:, None]], 1)
        np.save(os.path.join(folder, "day%02d.npy" % day), table.astype(np.float32))


class Training:
    def __init__(self, folder, batch=128):
        self.loader = DataLoader(DayFiles(folder), batch, shuffle=True, num_workers=1, persistent_workers=True, drop_last=True)
        self.net = Course()
        self.opt = torch.optim.Adam(self.net.parameters(), 2e-3)

    def epoch(self, number):
        total = torch.zeros(())
        for track, move in self.loader:
            loss = nn.functional.mse_loss(self.net(track), move)
            self.opt.zero_grad(set_to_none=True)
            loss.backward()
            self.opt.step()
            total += loss.detach()
        print("epoch %d: %.5f" % (number, total.item() / len(self.loader)))


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=2)
    ap.add_argument("--days", type=int, default=10)
    args = ap.parse_args()
    torch.manual_seed(31)
    with tempfile.TemporaryDirectory(prefix="vessels") as folder:
        sail(folder, args.days, 640 * (WINDOW + 1))
        training = Training(folder)
        began = time.perf_counter()
        for number in range(args.epochs):
            training.epoch(number)
        print("%.2f s, cpu %.2f" % (time.perf_counter() - began, time.process_time()))
        del training
