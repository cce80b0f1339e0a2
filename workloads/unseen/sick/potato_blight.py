# truth: oversubscribed
# about: the trainer and each of its two loader workers compute with four threads, a number that comes from the workstation on which it was written, so that on two cores a dozen threads take the processor from each other at every small operation
# cure: --threads 1
# whatif: threads=1
# needs: torch numpy
"""Blight on potato leaves: patches are cleaned of glare by the loader, then classified."""
import argparse

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

STAGES = 4


class Leaves(Dataset):
    def __init__(self, count, side=128):
        rng = np.random.default_rng(1845)
        self.stage = rng.integers(0, STAGES, count)
        self.photos = torch.from_numpy(rng.integers(0, 256, (64, 3, side, side), dtype=np.uint8))
        line = torch.exp(-torch.linspace(-2, 2, 7) ** 2)
        self.kernel = (line[:, None] * line / line.sum() ** 2).expand(3, 1, 7, 7).contiguous()

    def __len__(self):
        return len(self.stage)

    def __getitem__(self, i):
        stage = int(self.stage[i])
        photo = self.photos[i % len(self.photos)].float().div_(255)
        photo = photo + 0.3 * stage * torch.sin(photo * (3 + stage))
        glare = F.conv2d(photo[None], self.kernel, padding=3, groups=3)[0]
        return F.avg_pool2d(photo - 0.5 * glare, 4), stage


def threads_for(number):
    def setup(worker):
        torch.set_num_threads(number)
    return setup


class Grader(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv2d(3, width, 3, padding=1)] +
                                    [nn.Conv2d(width, width, 3, padding=1) for _ in range(4)])
        self.norms = nn.ModuleList([nn.GroupNorm(4, width) for _ in range(5)])
        self.out = nn.Linear(width, STAGES)

    def forward(self, x):
        for n, (layer, norm) in enumerate(zip(self.layers, self.norms)):
            x = F.relu(norm(layer(x)))
            if n % 2:
                x = F.max_pool2d(x, 2)
        return self.out(x.mean((2, 3)))


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--batch", type=int, default=8)
    return parser.parse_args()


def main():
    args = parse()
    torch.manual_seed(3)
    torch.set_num_threads(args.threads)
    loader = DataLoader(Leaves(args.batch * args.steps), batch_size=args.batch, num_workers=args.workers,
                        worker_init_fn=threads_for(args.threads))
    model = Grader()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    for step, (leaf, stage) in enumerate(loader, 1):
        loss = F.cross_entropy(model(leaf), stage)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"step {step} loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
