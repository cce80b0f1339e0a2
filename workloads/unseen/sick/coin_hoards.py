# truth: preprocessing_bound
# about: the local binary pattern of every coin is computed pixel by pixel in Python; two workers keep both cores busy with it and still the net waits for batches
# also: data_loading_bound
# cure: cured/coin_hoards.py
# whatif: transform=58
# needs: torch numpy
"""Which mint struck the coin?  Texture classifier for a hoard of worn bronze."""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

MINTS = 9
SIDE = 88
RING = [(-1, -1), (-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1)]


def strike_coins(count, seed):
    """Photographs as uint8: a disc, a mint's own relief, wear."""
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[-1:1:SIDE * 1j, -1:1:SIDE * 1j]
    r, phi = np.hypot(yy, xx), np.arctan2(yy, xx)
    coins = np.empty((count, SIDE, SIDE), np.uint8)
    mints = rng.integers(0, MINTS, count)
    for i, m in enumerate(mints):
        relief = np.cos((3 + m) * phi + rng.random() * 6) * np.cos((m % 3 + 2) * 4 * r)
        face = 110 + 60 * relief * (r < 0.9) + rng.normal(0, 12, r.shape)
        coins[i] = np.clip(face, 0, 255)
    return coins, mints


class BinaryPattern:
    """Local binary pattern map beside the grey image: what the catalogue's authors used."""

    def __call__(self, coin):
        rows, cols = coin.shape
        grey = coin.tolist()
        codes = np.zeros((rows, cols), np.uint8)
        for i in range(1, rows - 1):
            for j in range(1, cols - 1):
                centre = grey[i][j]
                code = 0
                for bit, (di, dj) in enumerate(RING):
                    if grey[i + di][j + dj] >= centre:
                        code |= 1 << bit
                codes[i, j] = code
        both = np.stack([coin, codes]).astype(np.float32)
        return torch.from_numpy(both / 127.5 - 1.0)


class Hoard(Dataset):
    def __init__(self, coins, mints, transform=None):
        self.coins, self.mints, self.transform = coins, mints, transform

    def __len__(self):
        return len(self.coins)

    def __getitem__(self, i):
        coin = self.coins[i]
        if self.transform is not None:
            coin = self.transform(coin)
        return coin, int(self.mints[i])


class ReliefNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(2, 24, 5, stride=4, padding=2)
        self.c2 = nn.Conv2d(24, 48, 3, stride=2, padding=1)
        self.c3 = nn.Conv2d(48, 64, 3, stride=2, padding=1)
        self.out = nn.Linear(64, MINTS)

    def forward(self, x):
        x = F.relu(self.c1(x))
        x = F.relu(self.c2(x))
        x = F.relu(self.c3(x))
        return self.out(x.mean((2, 3)))


def main():
    torch.manual_seed(2)
    coins, mints = strike_coins(960, seed=7)
    loader = DataLoader(Hoard(coins, mints, BinaryPattern()), batch_size=32, shuffle=True, num_workers=2,
                        persistent_workers=True)
    net = ReliefNet()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    for epoch in range(3):
        right = total = 0
        for x, y in loader:
            logits = net(x)
            loss = F.cross_entropy(logits, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            right += (logits.argmax(1) == y).sum().item()
            total += len(y)
        print(f"epoch {epoch}: {100 * right / total:.1f} % of the coins to their mint")


if __name__ == "__main__":
    main()
