"""Convective available energy from radiosonde ascents.

Archive layout, little endian: for each ascent LEVELS records of six int16
    pressure (hPa*10)  temperature (K*50)  dew point (K*50)  wind u  wind v (m/s*100)  height (dam)
and a table of labels beside it, as .npy.
"""
import os
import tempfile

import numpy as np
import torch
from torch import nn

LEVELS = 2400
FIELDS = 6
RECORD = FIELDS * 2
ASCENTS = 360
BATCH = 36
SCALE = np.array([1e4, 15000, 15000, 2000, 2000, 3000], np.float32)


def release_balloons(folder):
    rng = np.random.default_rng(1958)
    z = np.linspace(0, 1, LEVELS)
    energy = rng.gamma(2.0, 0.5, ASCENTS).astype(np.float32)
    path = os.path.join(folder, "ascents.i16")
    with open(path, "wb") as f:
        for e in energy:
            rec = np.empty((LEVELS, FIELDS), np.int16)
            rec[:, 0] = 10130 * np.exp(-3.2 * z)
            rec[:, 1] = 50 * (295 - 75 * z + e * np.exp(-((z - 0.2) / 0.05) ** 2)) + rng.normal(0, 10, LEVELS)
            rec[:, 2] = rec[:, 1] - 50 * (2 + 20 * z / (0.3 + e)) + rng.normal(0, 20, LEVELS)
            rec[:, 3:5] = rng.normal(0, 150, (LEVELS, 2)).cumsum(0).clip(-9000, 9000)
            rec[:, 5] = 2600 * z
            f.write(rec.tobytes())
    np.save(os.path.join(folder, "energy.npy"), energy)
    return path


class AscentFile:
    """Random access to ascents; a buffer would only hold what the next ascent does not need."""

    def __init__(self, path):
        self.f = open(path, "rb", buffering=0)
        self.scratch = bytearray(LEVELS * RECORD)

    def profile(self, index):
        f = self.f
        f.seek(index * LEVELS * RECORD)
        if f.readinto(self.scratch) != LEVELS * RECORD:
            raise EOFError(f"ascent {index} is cut short")
        return np.frombuffer(self.scratch, np.int16).reshape(LEVELS, FIELDS)

    def close(self):
        self.f.close()


def batches(archive, energy, order):
    for lo in range(0, len(order) - BATCH + 1, BATCH):
        pick = order[lo:lo + BATCH]
        x = np.empty((BATCH, FIELDS, LEVELS), np.float32)
        for row, i in enumerate(pick):
            x[row] = (archive.profile(i) / SCALE).T
        yield torch.from_numpy(x), torch.from_numpy(energy[pick])


def tower():
    return nn.Sequential(
        nn.Conv1d(FIELDS, 32, 16, stride=8), nn.ReLU(),
        nn.Conv1d(32, 48, 8, stride=4), nn.ReLU(),
        nn.Conv1d(48, 64, 5, stride=2), nn.ReLU(),
        nn.AdaptiveAvgPool1d(4), nn.Flatten(), nn.Linear(256, 1))


def main():
    torch.manual_seed(58)
    with tempfile.TemporaryDirectory() as folder:
        archive = AscentFile(release_balloons(folder))
        energy = np.load(os.path.join(folder, "energy.npy"))
        net = tower()
        opt = torch.optim.AdamW(net.parameters(), lr=2e-3)
        shuffler = np.random.default_rng(4)
        for season in range(10):
            err = []
            for x, y in batches(archive, energy, shuffler.permutation(ASCENTS)):
                opt.zero_grad()
                loss = nn.functional.mse_loss(net(x).squeeze(1), y)
                loss.backward()
                opt.step()
                err.append(loss.item())
            print(f"pass {season}: rmse {np.sqrt(np.mean(err)):.3f} kJ/kg")
        archive.close()


if __name__ == "__main__":
    main()
