# truth: logging_stall
# about: after every step the prediction for every pot of the batch is written to the log as a line of its own, each of them formatted and flushed, and the next step waits for the last line
# cure: --note-every 25
# whatif: logging=25
# env: OMP_NUM_THREADS=1
# needs: torch numpy
"""Lobsters per pot, from depth, bait, soak time and the weather of the week."""
import argparse
import logging
import os
import shutil
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

log = logging.getLogger("pots")


def season(pots, rng):
    x = rng.normal(size=(pots, 48)).astype(np.float32)
    rate = np.exp(0.5 * x[:, 0] - 0.3 * x[:, 1] ** 2 + 0.4 * np.sin(2 * x[:, 2]) + 0.5)
    return torch.from_numpy(x), torch.from_numpy(rng.poisson(rate).astype(np.float32))


class Catch(nn.Module):
    def __init__(self, inputs=48, width=192):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(inputs, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(),
                                   nn.Linear(width, 1))

    def forward(self, x):
        return self.inner(x).squeeze(-1)


def note(step, x, caught, rate):
    for pot, (depth, number, mean) in enumerate(zip(x[:, 0].tolist(), caught.tolist(), rate.tolist())):
        log.info("step %d pot %d depth %.3f caught %d expected %.4f", step, pot, depth, number, mean)


def main(args, folder):
    handler = logging.FileHandler(os.path.join(folder, "pots.log"))
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)

    torch.manual_seed(8)
    data = TensorDataset(*season(args.batch * 100, np.random.default_rng(8)))
    loader = DataLoader(data, batch_sampler=[range(i, i + args.batch) for i in range(0, len(data), args.batch)])
    model = Catch()
    opt = torch.optim.NAdam(model.parameters(), lr=5e-4)
    fitness = nn.PoissonNLLLoss()
    step = 0
    for passage in range(args.passages):
        losses = []
        for x, caught in loader:
            step += 1
            rate = model(x)
            loss = fitness(rate, caught)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.detach())
            if step % args.note_every == 0:
                note(step, x, caught, rate.detach().exp())
        print("season %d: deviance %.4f" % (passage + 1, torch.stack(losses).mean()))
    log.removeHandler(handler)
    handler.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--passages", type=int, default=6)
    parser.add_argument("--note-every", type=int, default=1)
    scratch = tempfile.mkdtemp()
    main(parser.parse_args(), scratch)
    shutil.rmtree(scratch)
