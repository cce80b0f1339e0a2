# truth: none
# about: a convolutional net on pictures that lie as bytes in one mapped file; slicing and scaling a batch is a small part of the step, the convolutions take it on all cores
# needs: torch numpy
"""Tells edible from poisonous mushroom caps on small pictures.

The pictures are one memory-mapped array of bytes; each batch is gathered, flipped and scaled at once. The validation
pictures are looked at twice in the whole run, and the weights are saved at its end.
"""
import os
import shutil
import tempfile
import time

import numpy as np
import torch
from torch import nn

COUNT, SIDE, SIZE, STEPS = 1536, 48, 32, 100


def photograph(path, seed):
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, COUNT)
    pictures = np.lib.format.open_memmap(path, mode="w+", dtype=np.uint8, shape=(COUNT, 3, SIDE, SIDE))
    y, x = np.mgrid[-1:1:SIDE * 1j, -1:1:SIDE * 1j].astype(np.float32)
    for at in range(0, COUNT, 128):
        part = label[at:at + 128, None, None, None]
        ring = np.cos((6 + 3 * part) * (x ** 2 + y ** 2)[None, None] + rng.uniform(0, 6, (len(part), 3, 1, 1)))
        noise = rng.integers(0, 60, (len(part), 3, SIDE, SIDE))
        pictures[at:at + 128] = np.clip(110 + 70 * ring + noise, 0, 255).astype(np.uint8)
    pictures.flush()
    return torch.from_numpy(label)


def gather(pictures, pick):
    batch = torch.from_numpy(pictures[pick])
    if np.random.rand() < 0.5:
        batch = batch.flip(3)
    return batch.float().div_(255).sub_(0.5)


def build():
    def stage(a, b):
        return [nn.Conv2d(a, b, 3, padding=1), nn.ReLU(), nn.Conv2d(b, b, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*stage(3, 24), *stage(24, 48), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(48, 2))


@torch.no_grad()
def validate(net, pictures, label, picks):
    net.eval()
    right = sum(int((net(gather(pictures, p)).argmax(1) == label[p]).sum()) for p in picks)
    net.train()
    return right / sum(len(p) for p in picks)


def main():
    torch.manual_seed(9)
    np.random.seed(9)
    torch.set_num_threads(os.cpu_count() or 1)
    folder = tempfile.mkdtemp(prefix="caps_")
    try:
        path = os.path.join(folder, "caps.npy")
        label = photograph(path, 9)
        pictures = np.load(path, mmap_mode="r")
        order = np.random.permutation(COUNT)
        held, train = order[:64], order[64:]
        net = build()
        optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
        begin = time.perf_counter()
        for step in range(STEPS):
            at = step * SIZE % (len(train) - SIZE)
            pick = np.sort(train[at:at + SIZE])
            loss = nn.functional.cross_entropy(net(gather(pictures, pick)), label[pick])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            if (step + 1) % 50 == 0:
                print("step %d: loss %.3f, held out %.2f" % (step + 1, loss.item(),
                                                             validate(net, pictures, label, np.split(held, 2))))
        print("%.2f ms a step" % ((time.perf_counter() - begin) / STEPS * 1e3))
        torch.save(net.state_dict(), os.path.join(folder, "caps.pt"))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
