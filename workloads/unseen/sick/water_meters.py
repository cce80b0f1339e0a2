# truth: logging_stall
# about: a debug line is formatted and flushed to the log file for every reading of every batch, in the training loop
# cure: --log-every 20
# whatif: logging=20
# needs: torch
"""Spots leaking customers from a day of water meter readings; the run's log shows what the model said."""
import argparse
import logging
import os
import tempfile
import time

import torch
from torch import nn

HOURS = 96


class LeakDetector(nn.Module):
    def __init__(self):
        super().__init__()
        self.waves = nn.Sequential(
            nn.Conv1d(1, 8, 7, padding=3), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(8, 8, 5, padding=2), nn.ReLU(), nn.MaxPool1d(2),
        )
        self.decide = nn.Sequential(nn.Linear(8 * HOURS // 4, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, days):
        return self.decide(self.waves(days.unsqueeze(1)).flatten(1)).squeeze(1)


def make_days(count):
    hours = torch.linspace(0, 4 * 2 * torch.pi, HOURS)
    peak = torch.rand(count, 1) * 3
    use = torch.relu(torch.sin(hours + peak) + 0.3 * torch.randn(count, HOURS))
    leaks = (torch.rand(count) < 0.3).float()
    return use + leaks.unsqueeze(1) * 0.2 * torch.rand(count, 1) + 0.05 * torch.rand(count, HOURS), leaks


def open_log(folder):
    log = logging.getLogger("leaks")
    log.setLevel(logging.DEBUG)
    log.propagate = False
    handler = logging.FileHandler(os.path.join(folder, "train.log"))
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(funcName)s:%(lineno)d %(message)s"))
    log.addHandler(handler)
    return log, handler


def train(options, log):
    days, leaks = make_days(6000)
    model = LeakDetector()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=5e-4)
    weigh = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(2.0))
    step = 0
    began = time.perf_counter()
    while step < options.steps:
        order = torch.randperm(len(days))
        for customers in order.split(options.batch):
            step += 1
            if step > options.steps or len(customers) < options.batch:
                break
            said = model(days[customers])
            loss = weigh(said, leaks[customers])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % options.log_every == 0:
                log.info("step %d loss %.5f", step, loss.item())
                for customer, logit, truth in zip(customers.tolist(), said.tolist(), leaks[customers].tolist()):
                    log.debug("customer %05d logit %+.4f leak %d %s", customer, logit, truth,
                              "ok" if (logit > 0) == (truth > 0.5) else "WRONG")
    took = time.perf_counter() - began
    print(f"loss {loss.item():.4f}; {options.steps} steps, {1000 * took / options.steps:.2f} ms each, {took:.2f} s")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=760)
    parser.add_argument("--batch", type=int, default=250)
    parser.add_argument("--log-every", type=int, default=1)
    options = parser.parse_args()
    torch.manual_seed(5)
    with tempfile.TemporaryDirectory(prefix="meters") as folder:
        log, handler = open_log(folder)
        try:
            train(options, log)
        finally:
            log.removeHandler(handler)
            handler.close()


if __name__ == "__main__":
    main()
