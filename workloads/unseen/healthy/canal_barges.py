# truth: none
# about: one worker cuts and flips the towpath pictures faster than the convolutions take them, so the steps are computing and nothing waits
# needs: torch numpy
"""Laden or empty? Barge hulls on towpath camera crops, small residual network, one loader worker."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIDE = 64
KINDS = 3


class Towpath(Dataset):
    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        self.kind = rng.integers(0, KINDS, count)
        self.pictures = rng.integers(0, 200, size=(count, SIDE + 8, SIDE + 8), dtype=np.uint8)
        for picture, kind in zip(self.pictures, self.kind):
            picture[30 + 6 * kind:] //= 2          # the waterline
        self.seed = seed

    def __len__(self):
        return len(self.kind)

    def __getitem__(self, i):
        top, left = np.random.default_rng(self.seed + i).integers(0, 8, 2)
        crop = self.pictures[i, top:top + SIDE, left:left + SIDE]
        if i % 2:
            crop = crop[:, ::-1]
        return torch.from_numpy(crop.astype(np.float32) / 255)[None], int(self.kind[i])


class Residual(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a, self.b = nn.Conv2d(c, c, 3, padding=1), nn.Conv2d(c, c, 3, padding=1)

    def forward(self, x):
        return torch.relu(x + self.b(torch.relu(self.a(x))))


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    loader = DataLoader(Towpath(640, 1), batch_size=32, shuffle=True, num_workers=1, prefetch_factor=4,
                        persistent_workers=True)
    net = nn.Sequential(nn.Conv2d(1, 24, 5, stride=2, padding=2), nn.ReLU(), Residual(24), nn.MaxPool2d(2), Residual(24),
                        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, KINDS))
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(6):
        hits = 0
        for picture, kind in loader:
            out = net(picture)
            loss = nn.functional.cross_entropy(out, kind)
            opt.zero_grad()
            loss.backward()
            opt.step()
            hits += (out.argmax(1) == kind).sum().item()
        print(f"epoch {epoch} loss {loss.item():.3f} right {hits / len(loader.dataset):.2f}")


if __name__ == "__main__":
    main()
