# truth: none
# about: handwriting as pen movements: one worker turns and jitters strokes in a fraction of the time that the recurrent net needs for a batch, one thread computes, so a batch is always there
# needs: torch
"""Who wrote it: a recurrent net over pen movements, with augmentation in a loader."""
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

POINTS, WRITERS = 48, 8


class Strokes(Dataset):
    def __init__(self, count, seed):
        generator = np.random.default_rng(seed)
        self.writers = generator.integers(0, WRITERS, count)
        t = np.linspace(0, 6, POINTS)
        pace = (1 + 0.3 * self.writers)[:, None] * t
        x = np.cos(pace + generator.random((count, 1)) * 6) + 0.2 * t
        y = np.sin(pace * 1.3 + generator.random((count, 1)) * 6)
        self.points = np.stack([x, y], axis=-1).astype(np.float32)

    def __len__(self):
        return len(self.writers)

    def __getitem__(self, i):
        angle, size = np.random.uniform(-0.3, 0.3), np.random.uniform(0.8, 1.2)
        turn = size * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]], np.float32)
        points = self.points[i] @ turn.astype(np.float32)
        moves = np.diff(points, axis=0, prepend=points[:1])
        moves += np.random.standard_normal(moves.shape).astype(np.float32) * 0.02
        return torch.from_numpy(moves), int(self.writers[i])


class WriterNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.strokes = nn.GRU(2, 128, batch_first=True)
        self.writer = nn.Linear(128, WRITERS)

    def forward(self, moves):
        states, _ = self.strokes(moves)
        return self.writer(states.mean(1))


def main():
    torch.manual_seed(3)
    np.random.seed(3)
    torch.set_num_threads(1)
    loader = DataLoader(Strokes(6400, 3), batch_size=64, shuffle=True, num_workers=1, persistent_workers=True)
    model = WriterNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    begin, steps = time.perf_counter(), 0
    for epoch in range(2):
        total = torch.zeros(())
        for moves, writers in loader:
            loss = nn.functional.cross_entropy(model(moves), writers)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += loss.detach()
            steps += 1
        print(f"epoch {epoch}: {float(total) / len(loader):.3f}")
    print(f"{steps} steps, {(time.perf_counter() - begin) / steps * 1e3:.1f} ms each")


if __name__ == "__main__":
    main()
