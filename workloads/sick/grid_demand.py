# truth: batch_too_small
# about: four windows a step, sliced by hand from a tensor in memory: the fixed cost of some sixty small operations is nearly all of a step, and with 64 windows a step costs little more
# gain: run
# cure: --batch 64
# whatif: batch=16
# needs: torch numpy
"""Tomorrow's demand of the power grid from the last week: dilated convolutions, plain SGD, data in memory."""
import argparse
import time

import numpy as np
import torch
from torch import nn


def demand(hours):
    rng = np.random.default_rng(41)
    t = np.arange(hours)
    load = 40 + 9 * np.sin(2 * np.pi * t / 24) + 5 * np.sin(2 * np.pi * t / 168) + 8 * np.cos(2 * np.pi * t / 8760)
    wind = np.convolve(rng.normal(0, 1, hours + 47), np.ones(48) / 48, "valid")
    load += rng.normal(0, 0.7, hours) - 4 * wind
    series = np.stack([load, wind * 7, np.sin(2 * np.pi * t / 24) * 5], 0)
    series = (series - series.mean(1, keepdims=True)) / series.std(1, keepdims=True)
    return torch.from_numpy(series.astype(np.float32))


class Layer(nn.Module):
    def __init__(self, width, dilation):
        super().__init__()
        self.gate = nn.Conv1d(width, 2 * width, 2, dilation=dilation)
        self.back = nn.Conv1d(width, width, 1)

    def forward(self, x):
        a, b = self.gate(x).chunk(2, 1)
        y = self.back(torch.tanh(a) * torch.sigmoid(b))
        return y + x[:, :, -y.shape[2]:]


class Forecast(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.first = nn.Conv1d(3, width, 1)
        self.layers = nn.Sequential(*[Layer(width, 2 ** d) for d in range(5)])
        self.last = nn.Linear(width, 24)

    def forward(self, x):
        return self.last(self.layers(self.first(x))[:, :, -1])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch", type=int, default=4)
    ap.add_argument("--windows", type=int, default=WINDOWS)
    args = ap.parse_args()
    torch.manual_seed(3)
    series = demand(args.windows + 80)
    past = series.unfold(1, 48, 1)[:, :args.windows].transpose(0, 1).contiguous()
    future = series[0].unfold(0, 24, 1)[48:48 + args.windows].contiguous()
    net = Forecast()
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    order = torch.randperm(args.windows)
    steps, sliding = 0, 0.0
    begin = time.perf_counter()
    for start in range(0, args.windows, args.batch):
        pick = order[start:start + args.batch]
        loss = nn.functional.smooth_l1_loss(net(past[pick]), future[pick])
        opt.zero_grad()
        loss.backward()
        opt.step()
        sliding += 0.01 * (loss.detach() - sliding)
        steps += 1
    spent = time.perf_counter() - begin
    print(f"loss {float(sliding):.3f}")
    print(f"{steps} steps, {spent:.2f} s, {1000 * spent / steps:.2f} ms a step")


WINDOWS = 12000
if __name__ == "__main__":
    main()
