"""Height of forest canopy from laser returns, by a small U-shaped network.

Every 25 steps a line says how many units of each layer were dead in the latest batch.
"""
import time

import torch
from torch import nn

STEPS, BATCH, SIDE = 150, 16, 48


def block(inside, outside):
    return nn.Sequential(nn.Conv2d(inside, outside, 3, padding=1), nn.BatchNorm2d(outside), nn.ReLU())


class Canopy(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1, self.down2 = block(3, 12), block(12, 24)
        self.middle = block(24, 24)
        self.up = block(36, 12)
        self.head = nn.Conv2d(12, 1, 1)
        self.pool = nn.MaxPool2d(2)
        self.grow = nn.Upsample(scale_factor=2, mode="nearest")

    def forward(self, x):
        a = self.down1(x)
        b = self.middle(self.down2(self.pool(a)))
        return self.head(self.up(torch.cat([a, self.grow(b)], 1)))


class UnitWatch:
    """Looks at the activations of the layers that are watched."""

    def __init__(self, model, names):
        self.seen = {}
        for name in names:
            getattr(model, name).register_forward_hook(self.hook(name))

    def hook(self, name):
        def keep(module, inputs, output):
            self.seen[name] = output.detach()
        return keep

    def dead(self):
        out = []
        for name, latest in self.seen.items():
            out.append(f"{name} {int((latest.amax((0, 2, 3)) <= 0).sum())}")
        return ", ".join(out)


def returns(count, seed):
    g = torch.Generator().manual_seed(seed)
    coarse = torch.rand(count, 1, SIDE // 8, SIDE // 8, generator=g)
    height = nn.functional.interpolate(coarse, size=(SIDE, SIDE), mode="bilinear", align_corners=False)
    noise = 0.1 * torch.randn(count, 3, SIDE, SIDE, generator=g)
    return torch.cat([height, height.square(), 1 - height], 1) + noise, height


def main():
    torch.manual_seed(4)
    pictures, heights = returns(320, 4)
    model = Canopy()
    watch = UnitWatch(model, ["down1", "down2", "middle", "up"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    began = time.perf_counter()
    for step in range(STEPS):
        rows = torch.randint(len(pictures), (BATCH,))
        loss = nn.functional.smooth_l1_loss(model(pictures[rows]), heights[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 24:
            print(f"step {step + 1} loss {loss.item():.4f} dead units: {watch.dead()}")
    took = time.perf_counter() - began
    print(f"{STEPS} steps, {1000 * took / STEPS:.1f} ms a step")


if __name__ == "__main__":
    main()
