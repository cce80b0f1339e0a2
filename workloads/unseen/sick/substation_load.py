# truth: gil_contention
# about: a watcher thread goes through the telemetry of the substation in pure Python all the time, and the training thread has to wait for the interpreter after nearly every torch call
# also: cpu_saturated sync_stall
# cure: cured/substation_load.py
# needs: torch numpy
"""Next hour's load of a substation from its last week, while the telemetry of the feeders is being watched."""
import argparse
import collections
import logging
import threading
import time

import numpy as np
import torch
from torch import nn

log = logging.getLogger("substation")
FEEDERS = 24


def telemetry(seed):
    """Lines as the gateway sends them: feeder, second, volts, amperes."""
    rng = np.random.default_rng(seed)
    volts, amps = rng.normal(10500, 60, 4096), rng.gamma(4, 30, 4096)
    return ["F%02d;%d;%.1f;%.2f" % (i % FEEDERS, i, v, a) for i, (v, a) in enumerate(zip(volts, amps))]


class FeederWatch:
    """Rolling load of each feeder, and the number of excursions."""

    def __init__(self, lines, window=60):
        self.lines = lines
        self.windows = collections.defaultdict(lambda: collections.deque(maxlen=window))
        self.excursions = 0

    def take(self, line):
        name, _, volts, amps = line.split(";")
        load = float(volts) * float(amps) * 1.732 / 1e6
        seen = self.windows[name]
        if len(seen) > 10:
            mean = sum(seen) / len(seen)
            spread = (sum((x - mean) ** 2 for x in seen) / len(seen)) ** 0.5
            if abs(load - mean) > 3 * spread:
                self.excursions += 1
        seen.append(load)

    def run(self, stop):
        while not stop.is_set():
            for line in self.lines:
                self.take(line)


class Forecaster(nn.Module):
    def __init__(self, hours=168, width=512):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(hours, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.head = nn.Linear(width, 1)

    def forward(self, week):
        return self.head(self.body(week)).squeeze(1)


def load_curve(hours, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(hours)
    curve = 20 + 6 * np.sin(2 * np.pi * t / 24) + 3 * np.sin(2 * np.pi * t / 168) + rng.normal(0, 0.7, hours)
    return torch.from_numpy(((curve - 20) / 6).astype(np.float32))


def train(steps, batch=320):
    curve = load_curve(24 * 365 * 2, 5)
    weeks = curve.unfold(0, 169, 1)
    net = Forecaster()
    opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    loss_of = nn.MSELoss()
    began = time.perf_counter()
    for step in range(steps):
        rows = weeks[torch.randint(len(weeks), (batch,))]
        loss = loss_of(net(rows[:, :-1]), rows[:, -1])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 25 == 24:
            log.info("step %d loss %.4f", step + 1, loss.item())
    log.info("%.1f ms a step", 1e3 * (time.perf_counter() - began) / steps)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=130)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    watch, stop = FeederWatch(telemetry(3)), threading.Event()
    watcher = threading.Thread(target=watch.run, args=(stop,), name="feeders", daemon=True)
    watcher.start()
    torch.set_num_threads(1)
    torch.manual_seed(5)
    try:
        train(args.steps)
    finally:
        stop.set()
        watcher.join()


if __name__ == "__main__":
    main()
