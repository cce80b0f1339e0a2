# truth: too_many_workers
# about: twelve workers on two cores hand out patches that lie ready in memory; each batch of 24 MB is copied into shared memory by one process and mapped by another, which costs more than stacking it in place, and the cores are fought over
# also: data_loading_bound oversubscribed shm_pressure allocation_churn
# advice: num_workers
# cure: --workers 0
# whatif: workers=0
# needs: torch numpy
"""Maps kelp from hyperspectral patches taken by a survey plane; rare classes are drawn more often."""
import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

BANDS, SIDE, BATCH, STEPS = 48, 32, 128, 300


def survey(patches=420):
    rng = np.random.default_rng(31)
    cover = rng.choice(3, patches, p=[.7, .2, .1])
    spectra = rng.normal(0, 1, (3, BANDS, 1, 1))
    cube = rng.standard_normal((patches, BANDS, SIDE, SIDE), dtype=np.float32)
    cube += (.3 * spectra[cover]).astype(np.float32)
    return torch.from_numpy(cube), torch.from_numpy(cover)


class KelpNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Conv2d(BANDS, 16, 1, stride=2)
        self.look = nn.Conv2d(16, 24, 3, stride=2)
        self.name = nn.Linear(24, 3)

    def forward(self, cube):
        x = torch.relu(self.look(torch.relu(self.mix(cube))))
        return self.name(x.mean((2, 3)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=12)
    arguments = parser.parse_args()
    torch.manual_seed(31)
    cube, cover = survey()
    often = 1 / torch.bincount(cover).float()
    sampler = WeightedRandomSampler(often[cover], STEPS * BATCH)
    loader = DataLoader(TensorDataset(cube, cover), batch_size=BATCH, sampler=sampler, num_workers=arguments.workers)
    model = KelpNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=.05, momentum=.9, nesterov=True)
    right, count, ends = 0, 0, []
    for patch, kind in loader:
        scores = model(patch)
        loss = nn.functional.cross_entropy(scores, kind)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right += int((scores.argmax(1) == kind).sum())
        count += len(kind)
        ends.append(time.perf_counter())
    each = (ends[-1] - ends[14]) / (len(ends) - 15)
    print("%d steps, %.0f %% right, %.1f ms per step" % (len(ends), 100 * right / count, each * 1e3))


if __name__ == "__main__":
    main()
