# truth: none
# about: two towers trained against each other in large batches; one worker draws whole batches well ahead and matrix products take the time
# needs: torch numpy
"""Proposes the next room of a museum to visitors: one tower for the way so far, one for the rooms, in-batch softmax.

The loader's items are whole batches, drawn by fancy indexing in one worker; negatives are the other visitors' rooms.
"""
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

ROOMS, WALK, SIZE, STEPS = 4000, 12, 512, 130


class Visits(Dataset):
    """Item i is batch i."""

    def __init__(self, visitors, seed):
        rng = np.random.default_rng(seed)
        taste = rng.integers(0, 40, visitors)
        self.walks = (taste[:, None] * 100 + rng.integers(0, 100, (visitors, WALK + 1))).astype(np.int64)
        stray = rng.random(self.walks.shape) < 0.15
        self.walks[stray] = rng.integers(0, ROOMS, int(stray.sum()))
        self.stay = rng.gamma(2.0, 3.0, (visitors, WALK)).astype(np.float32)
        self.order = rng.permutation(visitors)

    def __len__(self):
        return STEPS

    def __getitem__(self, i):
        pick = self.order[np.arange(i * SIZE, (i + 1) * SIZE) % len(self.order)]
        walks = self.walks[pick]
        stay = self.stay[pick]
        share = stay / stay.sum(axis=1, keepdims=True)
        return torch.from_numpy(walks[:, :WALK]), torch.from_numpy(share), torch.from_numpy(walks[:, WALK])


def tower(width):
    return nn.Sequential(nn.Linear(width, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 128))


class Towers(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.walk = nn.EmbeddingBag(ROOMS, width, mode="sum")
        self.room = nn.Embedding(ROOMS, width)
        self.visitor_tower = tower(width)
        self.room_tower = tower(width)

    def forward(self, walks, share, rooms):
        visitor = nn.functional.normalize(self.visitor_tower(self.walk(walks, per_sample_weights=share)), dim=1)
        room = nn.functional.normalize(self.room_tower(self.room(rooms)), dim=1)
        return visitor @ room.t() / 0.1


def main():
    torch.manual_seed(17)
    loader = DataLoader(Visits(60000, 17), batch_size=None, num_workers=1)
    model = Towers()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
    target = torch.arange(SIZE)
    begin = time.perf_counter()
    for step, (walks, share, rooms) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(walks, share, rooms), target)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 25 == 0:
            print("step %3d  loss %.3f" % (step, loss.item()))
    print("%.2f ms a step" % ((time.perf_counter() - begin) / STEPS * 1e3))


if __name__ == "__main__":
    main()
