# truth: checkpoint_stall
# about: the whole training state (model, Adam moments, moving average) is written and synced to disk every 2 steps, and the loop stands still meanwhile
# cure: --save-every 20
# whatif: checkpoint=10
# needs: torch
"""Finds the calving front of glaciers in radar tiles: a small encoder and a dense decoder that draws the mask."""
import argparse
import copy
import os
import tempfile
import time

import torch
from torch import nn
from torch.nn import functional as F

SIDE = 32


class FrontNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.look = nn.Sequential(
            nn.Conv2d(1, 16, 5, stride=2, padding=2), nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(32, 32, 3, stride=1, padding=1), nn.ReLU(),
        )
        self.draw = nn.Sequential(nn.Linear(32 * 8 * 8, 640), nn.ReLU(), nn.Linear(640, SIDE * SIDE))

    def forward(self, tiles):
        return self.draw(self.look(tiles).flatten(1)).view(-1, SIDE, SIDE)


def make_tiles(count, generator):
    """Ice on the left, water on the right, speckle over both."""
    rows = torch.linspace(0, 1, SIDE)
    start = torch.rand(count, 1, generator=generator) * 0.6 + 0.2
    bend = torch.randn(count, 1, generator=generator) * 0.2
    front = start + bend * torch.sin(rows * 6.0)
    columns = torch.linspace(0, 1, SIDE).view(1, 1, SIDE)
    mask = (columns < front.unsqueeze(2)).float()
    speckle = torch.rand(count, SIDE, SIDE, generator=generator)
    return (0.3 + 0.5 * mask + 0.6 * (speckle - 0.5)).unsqueeze(1), mask


def save(folder, model, average, optimizer, step):
    path = os.path.join(folder, "last.pt")
    state = {"step": step, "model": model.state_dict(), "average": average.state_dict(), "optimizer": optimizer.state_dict()}
    with open(path + ".new", "wb") as out:
        torch.save(state, out)
        out.flush()
        os.fsync(out.fileno())
    os.replace(path + ".new", path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=140)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--save-every", type=int, default=2)
    options = parser.parse_args()

    torch.manual_seed(11)
    generator = torch.Generator().manual_seed(12)
    tiles, masks = make_tiles(3000, generator)
    model = FrontNet()
    average = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    with tempfile.TemporaryDirectory(prefix="glacier") as folder:
        began = time.perf_counter()
        for step in range(1, options.steps + 1):
            chosen = torch.randint(len(tiles), (options.batch,), generator=generator)
            loss = F.binary_cross_entropy_with_logits(model(tiles[chosen]), masks[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 10 == 0:
                with torch.no_grad():
                    for kept, now in zip(average.parameters(), model.parameters()):
                        kept.lerp_(now, 0.1)
            if step % options.save_every == 0:
                save(folder, model, average, optimizer, step)
            if step % 35 == 0:
                print(f"step {step}: loss {loss.item():.4f}")
        took = time.perf_counter() - began
    print(f"{options.steps} steps, {1000 * took / options.steps:.2f} ms each, {took:.2f} s")


if __name__ == "__main__":
    main()
