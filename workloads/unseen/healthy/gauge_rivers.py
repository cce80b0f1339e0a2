# truth: none
# about: a recurrent network with attention over its states learns the level of a river from gauges upstream; all data in memory as float32, full batches, one line an epoch: the products of the recurrence are the time, and nothing is to be gained
# needs: torch numpy
"""Level of a river in twelve hours from thirty gauges upstream."""
import time

import numpy as np
import torch
from torch import nn

GAUGES, HOURS, HIDDEN, BATCH = 32, 36, 256, 192


def catchment(windows):
    rng = np.random.default_rng(51)
    hours = windows + HOURS + 12
    rain = rng.gamma(0.3, 1.0, (hours, GAUGES)).astype(np.float32)
    level = np.empty_like(rain)
    state = np.zeros(GAUGES, np.float32)
    keep = rng.uniform(0.8, 0.98, GAUGES).astype(np.float32)
    for h in range(hours):
        state = keep * state + (1 - keep) * rain[h]
        level[h] = state
    mouth = sum(np.roll(level[:, g], g % 12 + 1) for g in range(GAUGES)) / GAUGES
    level = torch.from_numpy((level - level.mean(0)) / level.std(0))
    mouth = torch.from_numpy(((mouth - mouth.mean()) / mouth.std()).astype(np.float32))
    return level.unfold(0, HOURS, 1)[:windows].transpose(1, 2).contiguous(), mouth[HOURS + 11:HOURS + 11 + windows]


class River(nn.Module):
    def __init__(self):
        super().__init__()
        self.states = nn.GRU(GAUGES, HIDDEN, batch_first=True)
        self.weight = nn.Linear(HIDDEN, 1)
        self.out = nn.Linear(HIDDEN, 1)

    def forward(self, x):
        h, _ = self.states(x)
        a = self.weight(h).softmax(1)
        return self.out((a * h).sum(1)).squeeze(1)


def main():
    torch.manual_seed(5)
    windows, target = catchment(BATCH * 14)
    net = River()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    steps = 0
    begin = time.perf_counter()
    for epoch in range(EPOCHS):
        for pick in torch.randperm(len(windows)).split(BATCH):
            loss = nn.functional.mse_loss(net(windows[pick]), target[pick])
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            steps += 1
        print(f"epoch {epoch} loss {loss.item():.4f}")
    spent = time.perf_counter() - begin
    print(f"{steps} steps, {spent:.2f} s, {1000 * spent / steps:.2f} ms a step")


EPOCHS = 5
if __name__ == "__main__":
    main()
