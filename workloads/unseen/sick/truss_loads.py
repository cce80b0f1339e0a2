# truth: precision_unused
# about: numpy's arrays are doubles and the net was made double to match them; all products of the surrogate run in float64, where float32 would do
# cure: --dtype float32
# needs: torch numpy
"""Forces in the bars of a truss from the loads on its joints: message passing over a fixed graph of joints."""
import argparse
import time

import numpy as np
import torch
from torch import nn

JOINTS, BATCH, WIDE = 40, 48, 128


def truss():
    link = np.zeros((JOINTS, JOINTS))
    for a in range(JOINTS):
        for b in (a + 1, a + 2):
            if b < JOINTS:
                link[a, b] = link[b, a] = 1
    return link / link.sum(1, keepdims=True)


def loads(rng, stiffness):
    push = rng.normal(0, 1, (BATCH, JOINTS, 3))
    return push, np.einsum("ij,bjk->bik", stiffness, push)[..., :2]


class Pass(nn.Module):
    def __init__(self, wide):
        super().__init__()
        self.own, self.near = nn.Linear(wide, wide), nn.Linear(wide, wide)
        self.after = nn.Linear(wide, wide)

    def forward(self, x, link):
        return x + self.after(torch.relu(self.own(x) + link @ self.near(x)))


class Surrogate(nn.Module):
    def __init__(self, passes=4):
        super().__init__()
        self.inside = nn.Linear(3, WIDE)
        self.passes = nn.ModuleList(Pass(WIDE) for _ in range(passes))
        self.out = nn.Linear(WIDE, 2)

    def forward(self, x, link):
        x = self.inside(x)
        for one in self.passes:
            x = one(x, link)
        return self.out(x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--steps", type=int, default=110)
    options = parser.parse_args()
    kind = getattr(torch, options.dtype)
    torch.manual_seed(37)
    rng = np.random.default_rng(37)
    link = torch.from_numpy(truss()).to(kind)
    stiffness = np.linalg.inv(2.2 * np.eye(JOINTS) - truss())
    model = Surrogate().to(kind)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    began, cpu = time.perf_counter(), time.process_time()
    for _ in range(options.steps):
        push, force = (torch.from_numpy(a).to(kind) for a in loads(rng, stiffness))
        loss = nn.functional.mse_loss(model(push, link), force)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    took = time.perf_counter() - began
    print(f"loss {loss.item():.4f}; {1000 * took / options.steps:.2f} ms a step, {time.process_time() - cpu:.1f} s of CPU, {took:.2f} s")


if __name__ == "__main__":
    main()
