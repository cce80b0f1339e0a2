"""Predicts the sway of a container crane's load from its drive logs.

The controllers write fixed records (six float32: hoist, trolley, speed, wind, load, sway) into one file per crane."""
import os
import shutil
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, RandomSampler

FIELDS = 6
RECORD = 4 * FIELDS
WINDOW = 1200


class DriveLog:
    def __init__(self, path):
        self.fd = os.open(path, os.O_RDONLY)
        self.records = os.fstat(self.fd).st_size // RECORD

    def window(self, first, count):
        raw = os.pread(self.fd, count * RECORD, first * RECORD)
        return np.frombuffer(raw, dtype="<f4").reshape(count, FIELDS)

    def close(self):
        os.close(self.fd)


class SwayWindows(Dataset):
    """A window of drive records without the sway, and the mean sway of its last tenth."""

    def __init__(self, logs, stride=60):
        self.logs = logs
        self.places = [(k, s) for k, log in enumerate(logs) for s in range(0, log.records - WINDOW, stride)]

    def __len__(self):
        return len(self.places)

    def __getitem__(self, index):
        crane, first = self.places[index]
        rows = self.logs[crane].window(first, WINDOW)
        return torch.from_numpy(rows[:, :5].T.copy()), torch.tensor(rows[-WINDOW // 10:, 5].mean())


def write_logs(folder, cranes=6, records=40_000):
    rng = np.random.default_rng(29)
    paths = []
    for crane in range(cranes):
        rows = rng.normal(size=(records, FIELDS)).astype("<f4")
        rows[:, 3] = np.convolve(rows[:, 3], np.ones(50) / 7, "same")
        rows[:, 5] = 0.6 * rows[:, 3] + 0.3 * rows[:, 2] * rows[:, 4]
        paths.append(os.path.join(folder, f"crane{crane:02d}.log"))
        rows.tofile(paths[-1])
    return paths


def train(logs, steps=400, batch=16):
    windows = SwayWindows(logs)
    sampler = RandomSampler(windows, replacement=True, num_samples=steps * batch,
                            generator=torch.Generator().manual_seed(4))
    loader = DataLoader(windows, batch_size=batch, sampler=sampler)
    net = nn.Sequential(nn.Conv1d(5, 32, 9, stride=2), nn.ReLU(), nn.Conv1d(32, 24, 9, stride=4), nn.ReLU(),
                        nn.AdaptiveAvgPool1d(8), nn.Flatten(), nn.Linear(192, 1))
    optimizer = torch.optim.RMSprop(net.parameters(), lr=5e-4)
    smooth = None
    for step, (drive, sway) in enumerate(loader, 1):
        optimizer.zero_grad()
        loss = nn.functional.smooth_l1_loss(net(drive)[:, 0], sway)
        loss.backward()
        optimizer.step()
        smooth = loss.item() if smooth is None else 0.95 * smooth + 0.05 * loss.item()
        if step % 100 == 0:
            print(f"step {step}: {smooth:.4f}")


def main():
    torch.manual_seed(2)
    folder = tempfile.mkdtemp(prefix="cranes-")
    logs = []
    try:
        logs = [DriveLog(path) for path in write_logs(folder)]
        train(logs)
    finally:
        for log in logs:
            log.close()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
