# truth: none
# about: labels for the points of cave scans; the scans are in memory, a batch is one index operation, and the network's products take the step
# needs: torch numpy
"""Rock, dripstone, water, gravel: a network names every point of a laser scan from the point and the whole scan."""
import time

import numpy as np
import torch
from torch import nn

POINTS, NAMES = 256, 4


def scans(count, seed):
    """Rooms with a floor, a lake, a heap and columns."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, NAMES, (count, POINTS))
    xyz = rng.uniform(-1, 1, (count, POINTS, 3)).astype(np.float32)
    centre = rng.uniform(-0.7, 0.7, (count, 1, 2)).astype(np.float32)
    column = (label == 1)[..., None]
    xyz[..., :2] = np.where(column, centre + 0.1 * xyz[..., :2], xyz[..., :2])
    xyz[..., 2] = np.select([label == 2, label == 3], [-0.9 + 0.01 * xyz[..., 2], -0.7 + 0.15 * xyz[..., 2]], xyz[..., 2])
    return torch.from_numpy(xyz), torch.from_numpy(label)


class PointLabels(nn.Module):
    def __init__(self, width=160):
        super().__init__()
        self.point = nn.Sequential(nn.Linear(3, 64), nn.ReLU(inplace=True), nn.Linear(64, width), nn.ReLU(inplace=True),
                                   nn.Linear(width, width))
        self.whole = nn.Linear(width, width)
        self.join = nn.Linear(width, width)
        self.out = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(width, width), nn.ReLU(inplace=True), nn.Linear(width, NAMES))

    def forward(self, xyz):
        h = self.point(xyz)
        return self.out(self.join(h) + self.whole(h.amax(1, keepdim=True)))


def main():
    torch.manual_seed(83)
    xyz, label = scans(640, 83)
    test_xyz, test_label = scans(64, 84)
    net = PointLabels()
    opt = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    steps, began = 0, time.perf_counter()
    for epoch in range(6):
        total = torch.zeros(())
        batches = torch.randperm(len(xyz)).split(20)
        for pick in batches:
            loss = nn.functional.cross_entropy(net(xyz[pick]).flatten(0, 1), label[pick].flatten())
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            total += loss.detach()
            steps += 1
        print("pass %d: loss %.4f" % (epoch, total.item() / len(batches)))
    took = time.perf_counter() - began
    with torch.no_grad():
        right = (net(test_xyz).argmax(2) == test_label).float().mean().item()
    print("%.1f %% of the points named right" % (100 * right))
    print("%d steps, %.1f s, %.2f ms each" % (steps, took, 1e3 * took / steps))


if __name__ == "__main__":
    main()
