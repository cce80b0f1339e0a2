# truth: none
# about: a convolutional classifier with gradients accumulated over four micro-batches, a checkpoint at the end of each epoch (a few milliseconds), a log line every 20 updates
# needs: torch
import os
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ACCUMULATE, EPOCHS = 4, 5


class Block(nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inside, outside, 3, padding=1, bias=False), nn.BatchNorm2d(outside), nn.ReLU(),
            nn.Conv2d(outside, outside, 3, padding=1, bias=False), nn.BatchNorm2d(outside),
        )
        self.skip = nn.Conv2d(inside, outside, 1)

    def forward(self, x):
        return torch.relu(self.body(x) + self.skip(x))


def build():
    return nn.Sequential(Block(3, 16), nn.MaxPool2d(2), Block(16, 32), nn.MaxPool2d(2), Block(32, 48),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(48, 6))


def save(path, model, optimizer, epoch):
    partial = path + ".part"
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, partial)
    os.replace(partial, path)


def main():
    torch.manual_seed(12)
    tiles = torch.randn(1280, 3, 24, 24)
    kinds = (tiles[:, 0].mean((1, 2)) * 60).long().clamp(-3, 2) + 3
    loader = DataLoader(TensorDataset(tiles, kinds), batch_size=16, shuffle=True)
    model = build()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    criterion = nn.CrossEntropyLoss()
    updates, total = 0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        for epoch in range(EPOCHS):
            for micro, (x, y) in enumerate(loader, 1):
                loss = criterion(model(x), y) / ACCUMULATE
                loss.backward()
                total += loss.item()
                if micro % ACCUMULATE == 0:
                    optimizer.step()
                    optimizer.zero_grad(set_to_none=True)
                    updates += 1
                    if updates % 20 == 0:
                        print(f"update {updates} loss {total / 20:.4f}", flush=True)
                        total = 0.0
            save(os.path.join(folder, "last.pt"), model, optimizer, epoch)


if __name__ == "__main__":
    main()
