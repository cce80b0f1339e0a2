# truth: precision_unused
# about: the simulation wrote its tables in double precision and the network was simply made double too, though the targets are noisy in the third digit and single precision is all it needs
# cure: --precision single
# needs: torch numpy
"""A stand-in for the simulation of a brick kiln: settings in, temperatures out."""
import argparse
import os
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SETTINGS, SENSORS = 24, 160
PRECISIONS = {"double": torch.float64, "single": torch.float32}


def simulate(folder, parts, rows, seed):
    """Tables of settings and of temperatures at the sensors, in parts as the simulation wrote them."""
    rng = np.random.default_rng(seed)
    mix = rng.normal(size=(SETTINGS, SENSORS)) / SETTINGS ** 0.5
    for part in range(parts):
        settings = rng.normal(size=(rows, SETTINGS))
        heat = np.sin(settings @ mix) + 0.2 * np.cos(2 * settings[:, :1]) + rng.normal(0, 0.005, (rows, SENSORS))
        np.savez(os.path.join(folder, f"part{part}.npz"), settings=settings, heat=heat)


def read_tables(folder, precision):
    settings, heat = [], []
    for name in sorted(os.listdir(folder)):
        with np.load(os.path.join(folder, name)) as part:
            settings.append(torch.from_numpy(part["settings"]))
            heat.append(torch.from_numpy(part["heat"]))
    return TensorDataset(torch.cat(settings).to(precision), torch.cat(heat).to(precision))


class Surrogate(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(SETTINGS, width), nn.Tanh(),
                                    nn.Linear(width, width), nn.Tanh(),
                                    nn.Linear(width, width), nn.Tanh(),
                                    nn.Linear(width, SENSORS))

    def forward(self, settings):
        return self.layers(settings)


def step(model, optimizer, settings, heat):
    def closure():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(settings), heat)
        loss.backward()
        return loss
    return optimizer.step(closure).item()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--parts", type=int, default=4)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--precision", choices=sorted(PRECISIONS), default="double")
    args = parser.parse_args()

    torch.manual_seed(29)
    precision = PRECISIONS[args.precision]
    with tempfile.TemporaryDirectory(prefix="kiln") as folder:
        simulate(folder, args.parts, args.rows, seed=29)
        tables = read_tables(folder, precision)
    loader = DataLoader(tables, batch_size=args.batch, shuffle=True)
    model = Surrogate(args.width).to(precision)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(args.epochs):
        losses = [step(model, optimizer, settings, heat) for settings, heat in loader]
        print(f"epoch {epoch}: first {losses[0]:.5f}, last {losses[-1]:.5f}")


if __name__ == "__main__":
    main()
