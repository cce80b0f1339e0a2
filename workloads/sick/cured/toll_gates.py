"""Vehicle class at a toll gate from the laser profile of the passing vehicle."""
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class GateNet(nn.Module):
    def __init__(self, classes=5):
        super().__init__()
        self.stem = nn.Conv2d(1, 8, 5, padding=2)
        self.body = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(8, 48, 3, padding=1), nn.ReLU(), nn.Conv2d(48, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten())
        self.head = nn.Linear(128, classes)
        self.noted = []

    def forward(self, profile):
        maps = torch.relu(self.stem(profile))
        if self.training:
            self.noted.append(maps[0, 0].detach().clone())
        return self.head(self.body(maps))


def vehicles(count):
    g = torch.Generator().manual_seed(4)
    kind = torch.randint(0, 5, (count,), generator=g)
    profile = torch.randn(count, 1, 32, 64, generator=g) * 0.5
    for k in range(5):
        profile[kind == k, :, : 6 + 5 * k, 8:56] += 1.0
    return TensorDataset(profile, kind)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=6)
    a = p.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    net = GateNet()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    loader = DataLoader(vehicles(1152), batch_size=48, shuffle=True, generator=torch.Generator().manual_seed(1))
    for epoch in range(a.epochs):
        right = 0
        for profile, kind in loader:
            scores = net(profile)
            loss = nn.functional.cross_entropy(scores, kind)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            right += (scores.argmax(1) == kind).sum().item()
        print(f"epoch {epoch}: {right / 1152:.3f}")


if __name__ == "__main__":
    main()
