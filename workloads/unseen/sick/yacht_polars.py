# truth: logging_stall
# about: after every step a record with every prediction, target and error of the batch, rounded one by one, is formatted as JSON and handed to the logging module, which takes longer than the step itself
# cure: --log-every 25
# whatif: logging=25
# env: OMP_NUM_THREADS=1
# needs: torch numpy
"""Polar diagrams of sailing yachts: boat speed at sixteen angles from hull, rig and wind."""
import argparse
import json
import logging
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn

ANGLES = 16


class JsonLines(logging.Formatter):
    def format(self, record):
        line = {"at": record.created, "level": record.levelname, "event": record.getMessage()}
        for name, values in record.fields.items():
            if isinstance(values, torch.Tensor):
                values = [[round(v, 5) for v in row] for row in values.tolist()]
            line[name] = values
        return json.dumps(line, sort_keys=True)


def run_logger(path):
    logger = logging.getLogger("polars")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    handler = logging.FileHandler(path)
    handler.setFormatter(JsonLines())
    logger.addHandler(handler)
    return logger


def fleet(boats, seed=53):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(boats, 20)).astype(np.float32)
    angle = np.linspace(30, 170, ANGLES, dtype=np.float32)
    hull = 6 + x[:, :1] + 0.5 * x[:, 1:2] * x[:, 2:3]
    return torch.from_numpy(x), torch.from_numpy(hull * np.sin(np.radians(angle * 0.8))[None] + 0.2 * x[:, 3:4])


def network():
    layers, width = [], 20
    for _ in range(3):
        layers += [nn.Linear(width, 256), nn.LayerNorm(256), nn.Mish()]
        width = 256
    return nn.Sequential(*layers, nn.Linear(width, ANGLES))


class Trainer:
    def __init__(self, log, log_every):
        self.log, self.log_every = log, log_every
        self.model = network()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)

    def step(self, number, x, speed):
        guess = self.model(x)
        error = guess - speed
        loss = error.square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        if number % self.log_every == 0:
            self.log.info("step", extra={"fields": {"number": number, "loss": loss.item(), "guess": guess.detach(),
                                                    "speed": speed, "error": error.detach()}})
        return loss.detach()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=768)
    parser.add_argument("--log-every", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(53)
    x, speed = fleet(20_000)
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(run_logger(Path(folder) / "train.jsonl"), args.log_every)
        total = torch.zeros(())
        for number in range(1, args.steps + 1):
            boats = torch.randint(len(x), (args.batch,))
            total += trainer.step(number, x[boats], speed[boats])
        print(f"mean loss over {args.steps} steps: {total.item() / args.steps:.4f}")
        logging.shutdown()


if __name__ == "__main__":
    main()
