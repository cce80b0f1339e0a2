# truth: oversubscribed
# about: the thread count of the old 16-core server is written into the trainer and into the start of every loader worker, so on a small machine dozens of OpenMP threads fight for the cores
# also: data_loading_bound preprocessing_bound too_many_workers
# cure: --threads 1
# whatif: threads=1
# needs: torch numpy
"""Grades oboe reeds by their crow: short recordings, log spectrogram, 2-d CNN."""
import argparse
import math

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

RATE = 8000
CLIP = RATE                     # one second


class Crows(IterableDataset):
    """Endless crowing of reeds, each worker with reeds of its own."""

    def __init__(self, clips, seed):
        self.clips = clips
        self.seed = seed

    def __iter__(self):
        info = get_worker_info()
        me, of = (info.id, info.num_workers) if info else (0, 1)
        gen = torch.Generator().manual_seed(self.seed + me)
        window = torch.hann_window(256)
        t = torch.arange(CLIP) / RATE
        for _ in range(me, self.clips, of):
            grade = int(torch.randint(0, 4, (1,), generator=gen))
            pitch = 420.0 + 30.0 * grade
            wave = sum(torch.sin(2 * math.pi * pitch * h * t) / h for h in (1, 2, 3))
            wave = wave + 0.3 * torch.randn(CLIP, generator=gen)
            spec = torch.stft(wave, 256, 128, window=window, return_complex=True)
            picture = spec.abs().clamp_min(1e-4).log()
            yield picture[None, :64, :60], grade


class ReedNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(1, 16, 3, padding=1)
        self.c2 = nn.Conv2d(16, 24, 3, padding=1)
        self.n1, self.n2 = nn.BatchNorm2d(16), nn.BatchNorm2d(24)
        self.pool = nn.MaxPool2d(2)
        self.out = nn.Linear(24, 4)

    def forward(self, x):
        x = self.pool(torch.relu(self.n1(self.c1(x))))
        x = self.pool(torch.relu(self.n2(self.c2(x))))
        return self.out(x.mean((2, 3)))


class ThreadSetter:
    def __init__(self, threads):
        self.threads = threads

    def __call__(self, worker_id):
        torch.set_num_threads(self.threads)


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--threads", type=int, default=16)
    ap.add_argument("--workers", type=int, default=2)
    ap.add_argument("--batch", type=int, default=16)
    ap.add_argument("--steps", type=int, default=100)
    args = ap.parse_args()

    torch.manual_seed(5)
    torch.set_num_threads(args.threads)
    loader = DataLoader(Crows(args.batch * args.steps, seed=40), batch_size=args.batch,
                        num_workers=args.workers, worker_init_fn=ThreadSetter(args.threads))
    model = ReedNet()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for i, (pictures, grades) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(pictures), grades)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if i % 40 == 39:
            print(f"step {i + 1}  loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
