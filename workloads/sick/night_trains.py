# truth: epoch_boundary_stall
# about: an epoch is seven steps long and the loader's two workers are started anew for each one; every new worker parses the timetable again before it can deliver its first batch
# also: data_loading_bound
# cure: --stay
# gain: run
# advice: persistent_workers
# needs: torch numpy
"""Which connections of the night trains will be missed. Every worker has its own timetable to look up the stops in."""
import csv
import os
import sys
import tempfile
import time

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset, get_worker_info

CONFIG = dict(trains=1400, stops=22, trips=7 * 64, batch=64, epochs=16, workers=2, hidden=112, lr=1e-3, seed=31,
              stay="--stay" in sys.argv[1:])


def publish_timetable(path, cfg):
    rng = np.random.default_rng(cfg["seed"])
    with open(path, "w", newline="") as f:
        out = csv.writer(f)
        out.writerow(["train", "position", "station", "arrives", "departs"])
        for train in range(cfg["trains"]):
            clock = 20 * 60 + int(rng.integers(0, 180))
            stations = rng.permutation(600)[:cfg["stops"]].tolist()
            legs = rng.integers(9, 55, cfg["stops"]).tolist()
            for position, (station, leg) in enumerate(zip(stations, legs)):
                clock += leg
                out.writerow([f"NJ{train:04d}", position, f"S{station:03d}", f"{clock // 60 % 24:02d}:{clock % 60:02d}",
                              f"{(clock + 3) // 60 % 24:02d}:{(clock + 3) % 60:02d}"])


def minutes(text):
    hours, rest = text.split(":")
    return int(hours) * 60 + int(rest)


class Timetable:
    def __init__(self, path):
        self.calls = {}
        with open(path, newline="") as f:
            for row in csv.DictReader(f):
                call = (int(row["station"][1:]), minutes(row["arrives"]), minutes(row["departs"]))
                self.calls.setdefault(row["train"], []).append(call)

    def run_of(self, train):
        return self.calls[train]


def open_timetable(worker_id):
    data = get_worker_info().dataset
    data.timetable = Timetable(data.path)


class Trips(Dataset):
    def __init__(self, path, cfg):
        self.path, self.cfg, self.timetable = path, cfg, None

    def __len__(self):
        return self.cfg["trips"]

    def __getitem__(self, k):
        rng = np.random.default_rng((self.cfg["seed"], k))
        run = self.timetable.run_of(f"NJ{int(rng.integers(self.cfg['trains'])):04d}")
        late = np.cumsum(rng.normal(0.4, 2.0, len(run)))
        steps = np.array([[arrive / 1440, leave / 1440, delay / 30] for (_, arrive, leave), delay in zip(run, late)], np.float32)
        places = np.array([station for station, _, _ in run])
        return places, steps, np.float32(late[-1] > 9)


class Missed(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.place = nn.Embedding(600, 24)
        self.along = nn.GRU(24 + 3, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, places, steps):
        states, _ = self.along(torch.cat([self.place(places), steps], 2))
        return self.out(states[:, -1]).squeeze(1)


def run(cfg, path):
    loader = DataLoader(Trips(path, cfg), batch_size=cfg["batch"], shuffle=True, num_workers=cfg["workers"],
                        worker_init_fn=open_timetable, persistent_workers=cfg["stay"])
    model = Missed(cfg["hidden"])
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg["lr"])
    loss_of = nn.BCEWithLogitsLoss()
    began, steps = time.perf_counter(), 0
    for epoch in range(cfg["epochs"]):
        total = 0.0
        for places, times, missed in loader:
            loss = loss_of(model(places, times), missed)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            steps += 1
        if epoch % 4 == 3:
            print(f"epoch {epoch + 1}: {total / len(loader):.4f}")
    took = time.perf_counter() - began
    print(f"{steps} steps, {1000 * took / steps:.2f} ms a step")


if __name__ == "__main__":
    torch.manual_seed(CONFIG["seed"])
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        timetable = os.path.join(folder, "night.csv")
        publish_timetable(timetable, CONFIG)
        run(CONFIG, timetable)
