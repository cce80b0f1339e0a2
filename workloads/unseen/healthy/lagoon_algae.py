# truth: none
# about: microscope pictures of algae, cut and mirrored by one worker that is well ahead of a convolution network; the time goes into the network
# needs: torch numpy
"""Genus of lagoon algae from microscope pictures, three epochs."""
import os
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

GENERA = 6
COUNT, SIDE, CUT = 768, 72, 64


def write_slides(path, labels, rng):
    slides = np.lib.format.open_memmap(path, "w+", np.uint8, (COUNT, 3, SIDE, SIDE))
    yy, xx = np.mgrid[:SIDE, :SIDE] / SIDE
    for k, genus in enumerate(labels):
        bands = np.sin((genus + 2) * 6.0 * (xx * np.cos(genus) + yy * np.sin(genus)))
        slides[k] = np.clip(128 + 50 * bands + rng.normal(0, 20, (3, SIDE, SIDE)), 0, 255)
    slides.flush()


class Slides(Dataset):
    def __init__(self, path, labels):
        self.slides = np.load(path, mmap_mode="r")
        self.labels = labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, k):
        top, left = torch.randint(0, SIDE - CUT + 1, (2,)).tolist()
        cut = torch.from_numpy(self.slides[k, :, top:top + CUT, left:left + CUT].astype(np.float32))
        if torch.rand(()) < 0.5:
            cut = cut.flip(2)
        return cut.sub_(128).div_(64), int(self.labels[k])


class Block(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.conv = nn.Conv2d(a, b, 3, stride=2, padding=1)
        self.more = nn.Conv2d(b, b, 3, padding=1)
        self.norm = nn.BatchNorm2d(b)

    def forward(self, x):
        x = torch.relu(self.conv(x))
        return torch.relu(x + self.norm(self.more(x)))


def main():
    torch.manual_seed(11)
    torch.set_num_threads(1)
    rng = np.random.default_rng(11)
    labels = rng.integers(0, GENERA, COUNT)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "slides.npy")
        write_slides(path, labels, rng)
        loader = DataLoader(Slides(path, labels), batch_size=24, shuffle=True,
                            num_workers=1, persistent_workers=True)
        net = nn.Sequential(Block(3, 32), Block(32, 48), Block(48, 96),
                            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(96, GENERA))
        opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
        for epoch in range(3):
            right = 0
            for x, y in loader:
                out = net(x)
                loss = nn.functional.cross_entropy(out, y)
                opt.zero_grad()
                loss.backward()
                opt.step()
                right += (out.argmax(1) == y).sum().item()
            print(f"epoch {epoch}: {right / COUNT:.3f}")


if __name__ == "__main__":
    main()
