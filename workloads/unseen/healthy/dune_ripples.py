# truth: none
# about: dilated convolutions over height maps that lie in memory; the step is convolutions on both cores, nothing waits
# needs: torch numpy
"""How sand ripples look an hour later: a residual, dilated convolutional forecast of height maps."""
import sys
import time

import numpy as np
import torch
from torch import nn

torch.set_num_threads(2)
STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 90


def desert(hours, size, rng):
    y, x = np.mgrid[0:size, 0:size].astype(np.float32)
    maps = np.zeros((hours, size, size), np.float32)
    for tall, wave, drift in zip(rng.uniform(0.2, 1, 12), rng.uniform(0.1, 0.6, (12, 2)), rng.uniform(0.05, 0.4, 12)):
        for hour in range(hours):
            maps[hour] += tall * np.sin(wave[0] * x + wave[1] * y - drift * hour)
    return torch.from_numpy(maps / maps.std())


class Ripple(nn.Module):
    def __init__(self, wide, dilation):
        super().__init__()
        self.a = nn.Conv2d(wide, wide, 3, padding=dilation, dilation=dilation)
        self.b = nn.Conv2d(wide, wide, 3, padding=1)

    def forward(self, x):
        return x + self.b(torch.relu(self.a(x)))


def forecaster(wide=24):
    return nn.Sequential(nn.Conv2d(4, wide, 3, padding=1), *[Ripple(wide, d) for d in (1, 2, 4)], nn.Conv2d(wide, 1, 1))


torch.manual_seed(14)
maps = desert(300, 64, np.random.default_rng(14))
dice = torch.Generator().manual_seed(15)
net = forecaster()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
span = torch.arange(4)
began, cpu = time.perf_counter(), time.process_time()
for step in range(STEPS):
    at = torch.randint(0, 295, (8,), generator=dice)
    loss = nn.functional.mse_loss(net(maps[at[:, None] + span]), maps[at + 4][:, None])
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
took = time.perf_counter() - began
print(f"error {loss.item():.3f}; {1000 * took / STEPS:.2f} ms a step, {time.process_time() - cpu:.1f} s of CPU, {took:.2f} s")
