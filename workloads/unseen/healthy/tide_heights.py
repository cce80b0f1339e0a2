# truth: none
# about: learns tides from arrays that lie in memory, drawn by a permutation without any loader; the matrix products take the time
# needs: torch numpy
"""Predicts the height of the tide twelve hours ahead from windows of the gauges of a harbour."""
import time

import numpy as np
import torch
from torch import nn

GAUGES, WINDOW, BATCH, EPOCHS = 4, 96, 512, 9


def harbour(hours=12_500):
    rng = np.random.default_rng(88)
    t = np.arange(hours)
    tide = sum(a * np.sin(2 * np.pi * t / p) for a, p in ((1.0, 12.42), (.45, 12.0), (.3, 25.82), (.2, 23.93)))
    heights = np.stack([np.roll(tide, k) for k in range(GAUGES)]) + rng.normal(0, .05, (GAUGES, hours))
    windows = np.lib.stride_tricks.sliding_window_view(heights, WINDOW, axis=1)[:, :-12]
    x = torch.from_numpy(np.ascontiguousarray(windows.transpose(1, 0, 2).astype(np.float32))).flatten(1)
    y = torch.from_numpy(heights[0, WINDOW + 11:].astype(np.float32))
    return x, y[:len(x)]


class TideNet(nn.Module):
    def __init__(self, width=768):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(GAUGES * WINDOW, width), nn.GELU(), nn.Linear(width, width), nn.GELU(),
                                    nn.Linear(width, width), nn.GELU(), nn.Linear(width, 1))

    def forward(self, window):
        return self.layers(window).squeeze(1)


def main():
    torch.manual_seed(88)
    x, y = harbour()
    model = TideNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=.03, momentum=.9)
    steps, began = 0, time.perf_counter()
    for epoch in range(EPOCHS):
        order, total = torch.randperm(len(x)), 0.0
        for chosen in order.split(BATCH):
            optimizer.zero_grad(set_to_none=True)
            loss = nn.functional.mse_loss(model(x[chosen]), y[chosen])
            loss.backward()
            optimizer.step()
            total += loss.item() * len(chosen)
            steps += 1
        print("epoch %d: error %.4f" % (epoch, total / len(x)))
    took = time.perf_counter() - began
    print("%d steps, %.1f ms per step" % (steps, took / steps * 1e3))


if __name__ == "__main__":
    main()
