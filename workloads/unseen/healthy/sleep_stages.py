# truth: none
# about: sleep stages from EEG with a network of one-dimensional convolutions; a small validation after every 40 steps and a checkpoint of under 1 MB at the end of an epoch are a few hundredths of the run
# needs: torch
"""Scores sleep stages from thirty-second EEG epochs; keeps the best network."""
import os
import shutil
import tempfile
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SAMPLES, STAGES, BATCH = 1500, 5, 48


def nights(count, seed):
    gen = torch.Generator().manual_seed(seed)
    stage = torch.randint(0, STAGES, (count,), generator=gen)
    t = torch.arange(SAMPLES) / 50.0
    rhythm = torch.tensor([10.0, 6.0, 13.0, 1.5, 4.0])[stage]
    phase = 6.3 * torch.rand(count, 2, 1, generator=gen)
    wave = torch.sin(6.2832 * rhythm[:, None, None] * t + phase)
    return TensorDataset(0.6 * wave + torch.randn(count, 2, SAMPLES, generator=gen), stage)


def network():
    return nn.Sequential(
        nn.Conv1d(2, 32, 25, stride=3, padding=12), nn.BatchNorm1d(32), nn.ReLU(),
        nn.Conv1d(32, 64, 9, padding=4), nn.BatchNorm1d(64), nn.ReLU(), nn.MaxPool1d(4),
        nn.Conv1d(64, 96, 7, padding=3), nn.BatchNorm1d(96), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(),
        nn.Linear(96, STAGES))


@torch.no_grad()
def validate(model, loader):
    model.eval()
    right = sum((model(x).argmax(1) == stage).sum() for x, stage in loader)
    model.train()
    return float(right) / len(loader.dataset)


def main():
    torch.manual_seed(15)
    training = DataLoader(nights(40 * BATCH, 61), batch_size=BATCH, shuffle=True, drop_last=True)
    held_out = DataLoader(nights(2 * BATCH, 62), batch_size=BATCH)
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 120)
    folder = tempfile.mkdtemp(prefix="sleep_stages_")
    try:
        begin, steps, aside = time.perf_counter(), 0, 0.0
        for epoch in range(3):
            total = 0.0
            for x, stage in training:
                loss = nn.functional.cross_entropy(model(x), stage)
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
                schedule.step()
                total = total + loss.detach()
                steps += 1
            pause = time.perf_counter()
            right = validate(model, held_out)
            torch.save({"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()},
                       os.path.join(folder, f"epoch{epoch}.pt"))
            aside += time.perf_counter() - pause
            print(f"epoch {epoch}: loss {float(total) / len(training):.3f}, right {right:.3f}")
        took = time.perf_counter() - begin
        print(f"{steps} steps, {took:.2f} s, {1e3 * took / steps:.1f} ms a step, {aside:.2f} s aside")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
