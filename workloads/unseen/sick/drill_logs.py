# truth: too_many_workers
# about: the drill logs are in memory already and cutting a window out of them costs nothing, but eight workers on few cores pickle every window and send it through a pipe to the training process, which unpickles it again; without workers the windows are views
# also: data_loading_bound oversubscribed collate_bound
# advice: num_workers
# whatif: workers=0
# cure: --workers 0
# env: OPENBLAS_NUM_THREADS=1
# needs: torch numpy
"""Rock type from the wireline log of a borehole: gamma, density, neutron, sonic and eight image pads."""
import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CHANNELS, WINDOW, ROCKS = 12, 4096, 7
torch.set_num_threads(1)


class Windows(Dataset):
    def __init__(self, holes, count, seed=3):
        rng = np.random.default_rng(seed)
        self.logs = [rng.standard_normal((CHANNELS, 60_000), dtype=np.float32) for _ in range(holes)]
        self.rocks = rng.integers(0, ROCKS, count)
        self.hole = rng.integers(0, holes, count)
        self.depth = rng.integers(0, 60_000 - WINDOW, count)
        for log, r in zip(self.logs, range(holes)):
            log[r % CHANNELS] += 0.5

    def __len__(self):
        return len(self.rocks)

    def __getitem__(self, i):
        d = self.depth[i]
        return self.logs[self.hole[i]][:, d:d + WINDOW], int(self.rocks[i])


def as_list(samples):
    """the boreholes' pads are put together by the model, pad by pad"""
    return samples


class PadNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.thin = nn.AvgPool1d(16)
        self.body = nn.Sequential(nn.Conv1d(CHANNELS, 32, 7, stride=2), nn.ReLU(),
                                  nn.Conv1d(32, 48, 5, stride=2), nn.ReLU(), nn.AdaptiveAvgPool1d(4), nn.Flatten(),
                                  nn.Linear(192, ROCKS))

    def forward(self, windows):
        return self.body(torch.cat([self.thin(torch.from_numpy(w)[None]) for w in windows]))


def fit(args):
    torch.manual_seed(0)
    data = Windows(8, args.steps * 64)
    more = dict(prefetch_factor=2) if args.workers else {}
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=args.workers, collate_fn=as_list, **more)
    net = PadNet()
    opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    for n, samples in enumerate(loader, 1):
        windows, rocks = zip(*samples)
        loss = nn.functional.cross_entropy(net(windows), torch.tensor(rocks))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if n % 40 == 0:
            print(n, round(loss.item(), 4))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--steps", type=int, default=170)
    fit(parser.parse_args())
