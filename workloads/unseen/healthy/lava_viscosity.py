# truth: none
# about: an ordinary regression of lava viscosity on composition and temperature, class Trainer, large batches cut from tensors in memory, an evaluation after each of a few epochs
# needs: torch numpy
import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

OXIDES = ["SiO2", "TiO2", "Al2O3", "FeO", "MnO", "MgO", "CaO", "Na2O", "K2O", "P2O5", "H2O"]


def melts(n, seed):
    rng = np.random.default_rng(seed)
    share = rng.dirichlet(np.array([50, 1, 15, 9, 0.3, 7, 9, 3, 1.5, 0.4, 1.0]), n)
    kelvin = rng.uniform(1100, 1800, n)
    b = 4000 + 9000 * share[:, 0] + 2500 * share[:, 2] - 6000 * share[:, 10]
    c = 200 + 300 * share[:, 0] - 900 * share[:, 10]
    viscosity = -4.55 + b / (kelvin - c) + rng.normal(0, 0.05, n)
    x = np.column_stack([share, (kelvin - 1450) / 200]).astype(np.float32)
    return TensorDataset(torch.from_numpy(x), torch.from_numpy(viscosity.astype(np.float32)))


class Trainer:
    def __init__(self, model, train, test, batch):
        self.model, self.test = model, test
        # whole batches are indexed at once
        self.loader = DataLoader(train, sampler=BatchSampler(RandomSampler(train), batch, True), batch_size=None)
        self.opt = torch.optim.Adam(model.parameters(), 1e-3)
        self.loss = nn.MSELoss()

    def epoch(self):
        self.model.train()
        for x, y in self.loader:
            self.opt.zero_grad(set_to_none=True)
            loss = self.loss(self.model(x).squeeze(1), y)
            loss.backward()
            self.opt.step()

    @torch.no_grad()
    def score(self):
        self.model.eval()
        x, y = self.test.tensors
        return self.loss(self.model(x).squeeze(1), y).sqrt().item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=8)
    args = ap.parse_args()
    torch.set_num_threads(2)
    torch.manual_seed(16)
    model = nn.Sequential(nn.Linear(len(OXIDES) + 1, 384), nn.GELU(), nn.Linear(384, 384), nn.GELU(), nn.Linear(384, 384), nn.GELU(),
                          nn.Linear(384, 1))
    trainer = Trainer(model, melts(50 * 1536, 1), melts(1500, 2), 1536)
    for epoch in range(args.epochs):
        began = time.perf_counter()
        trainer.epoch()
        print("epoch %d: rmse %.3f, %.1f s" % (epoch, trainer.score(), time.perf_counter() - began))


if __name__ == "__main__":
    main()
