# truth: optimizer_bound
# about: the optimizer, written by hand, goes through every weight matrix row by row in Python to give each neuron its own normalised update, thousands of tiny operations a step; cured, it does the same rows of a matrix at once
# cure: cured/zinc_coatings.py
# whatif: optimizer=65
# env: OMP_NUM_THREADS=1
# needs: torch
"""Thickness and adhesion of zinc coatings from the settings of a galvanising line."""
import torch
from torch import nn
from torch.optim import Optimizer


class RowNormalised(Optimizer):
    """Momentum whose update has the same length for every neuron: the row of weights that leads into it."""

    def __init__(self, params, lr=1e-3, momentum=0.9, decay=1e-4, eps=1e-8):
        super().__init__(params, dict(lr=lr, momentum=momentum, decay=decay, eps=eps))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                state = self.state[weight]
                if not state:
                    state["velocity"] = torch.zeros_like(weight)
                self._update(weight, weight.grad, state["velocity"], group)

    def _update(self, weight, grad, velocity, group):
        if weight.ndim < 2:
            velocity.mul_(group["momentum"]).add_(grad)
            weight.sub_(velocity, alpha=group["lr"])
            return
        for row in range(weight.shape[0]):
            v = velocity[row]
            v.mul_(group["momentum"]).add_(grad[row])
            length = v.norm().add_(group["eps"])
            weight[row].mul_(1 - group["lr"] * group["decay"])
            weight[row].sub_(v / length * group["lr"])


class Line(nn.Module):
    """Settings of bath, strip and air knives, each read by a part of its own."""

    def __init__(self, groups=(12, 20, 16), width=160):
        super().__init__()
        self.groups = groups
        self.readers = nn.ModuleList(nn.Sequential(nn.Linear(g, width), nn.ELU(), nn.Linear(width, width))
                                     for g in groups)
        self.join = nn.Sequential(nn.ELU(), nn.Linear(width * len(groups), 384), nn.ELU(), nn.Linear(384, 256), nn.ELU())
        self.thickness = nn.Linear(256, 1)
        self.adhesion = nn.Linear(256, 1)

    def forward(self, settings):
        parts = [reader(part) for reader, part in zip(self.readers, settings.split(self.groups, 1))]
        joined = self.join(torch.cat(parts, 1))
        return self.thickness(joined)[:, 0], self.adhesion(joined)[:, 0]


def coils(count, gen):
    settings = torch.randn(count, 48, generator=gen)
    thickness = settings[:, 0] - 0.6 * settings[:, 14] + 0.4 * settings[:, 33] * settings[:, 2]
    adhesion = torch.tanh(settings[:, 5] + settings[:, 20]) + 0.05 * torch.randn(count, generator=gen)
    return settings, thickness, adhesion


def main():
    torch.manual_seed(30)
    gen = torch.Generator().manual_seed(30)
    settings, thickness, adhesion = coils(30_000, gen)
    line = Line()
    optimizer = RowNormalised(line.parameters(), lr=2e-3)
    for step in range(1, 181):
        pick = torch.randint(len(settings), (640,), generator=gen)
        thick, stick = line(settings[pick])
        loss = nn.functional.mse_loss(thick, thickness[pick]) + nn.functional.mse_loss(stick, adhesion[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 60 == 0:
            print(f"step {step:3d}   loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
