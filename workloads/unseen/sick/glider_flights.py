# truth: small_reads
# about: a flight log is read 12 bytes at a time, one unbuffered read for each second of the flight, straight into the array; a flight takes 1500 calls for 18 kB
# also: data_loading_bound preprocessing_bound io_wait
# cure: cured/glider_flights.py
# needs: torch numpy
"""Learns from glider flight logs how far a thermal will carry: height, speed and climb for every second."""
import os
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SECONDS, FIELDS, FLIGHTS, BATCH, EPOCHS = 1500, 3, 320, 16, 32
TICK = 4 * FIELDS


def logbook(path):
    """One file with all flights, one after the other, as the recorder wrote them."""
    rng = np.random.default_rng(14)
    distance = np.empty(FLIGHTS, np.float32)
    with open(path, "wb") as file:
        for i in range(FLIGHTS):
            climb = np.convolve(rng.normal(0, 1, SECONDS), np.ones(20) / 20, "same")
            flight = np.stack([climb.cumsum() / 50, rng.normal(25, 3, SECONDS) / 25, climb], 1)
            file.write(flight.astype(np.float32).tobytes())
            distance[i] = flight[-200:, 0].mean()
    return distance


class Flights(Dataset):
    def __init__(self, path, distance):
        self.path, self.distance = path, distance

    def __len__(self):
        return len(self.distance)

    def __getitem__(self, i):
        flight = np.empty((SECONDS, FIELDS), np.float32)
        room = memoryview(flight).cast("B")
        with open(self.path, "rb", buffering=0) as log:
            log.seek(i * SECONDS * TICK)
            for at in range(0, SECONDS * TICK, TICK):
                log.readinto(room[at:at + TICK])
        return torch.from_numpy(flight).t(), self.distance[i]


class Thermal(nn.Module):
    def __init__(self):
        super().__init__()
        self.coarse = nn.Conv1d(FIELDS, 16, 15, stride=10)
        self.fine = nn.Conv1d(16, 16, 5, stride=5)
        self.out = nn.Linear(16 * 29, 1)

    def forward(self, flight):
        x = torch.relu(self.coarse(flight))
        x = torch.relu(self.fine(x))
        return self.out(x.flatten(1)).squeeze(1)


def main():
    torch.manual_seed(14)
    with tempfile.TemporaryDirectory(prefix="gliders-") as folder:
        path = os.path.join(folder, "season.log")
        flights = Flights(path, logbook(path))
        loader = DataLoader(flights, batch_size=BATCH, shuffle=True, num_workers=2, persistent_workers=True)
        model = Thermal()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        steps, error = 0, 0.0
        began = time.perf_counter()
        for epoch in range(EPOCHS):
            for flight, distance in loader:
                loss = nn.functional.huber_loss(model(flight), distance)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                error += loss.item()
                steps += 1
        took = time.perf_counter() - began
    print("%d steps, mean error %.3f, %.1f ms per step" % (steps, error / steps, took / steps * 1e3))


if __name__ == "__main__":
    main()
