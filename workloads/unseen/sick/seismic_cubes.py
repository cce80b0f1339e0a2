# truth: allocation_churn
# about: the attributes of the whole 48 MB cube are computed anew in every step through a chain of temporaries; each is a block too large for the allocator to keep, so it is mapped, faulted in page by page and given back
# also: cpu_saturated memory_pressure preprocessing_bound
# cure: cured/seismic_cubes.py
# needs: torch numpy
"""Faults in a seismic cube: noise is added to the cube, amplitude attributes are computed, patches are classified."""
import argparse
import time

import numpy as np
import torch
import torch.nn as nn

SHAPE = (192, 256, 256)


def make_cube(seed):
    rng = np.random.default_rng(seed)
    depth = np.arange(SHAPE[0], dtype=np.float32)[:, None, None]
    throw = np.cumsum(rng.random(SHAPE[1:]) < 0.002, 1).astype(np.float32)
    cube = np.sin(0.35 * (depth + 4 * throw), dtype=np.float32)
    edge = np.zeros(SHAPE[1:], np.float32)
    edge[:, 1:] = throw[:, 1:] != throw[:, :-1]
    return torch.from_numpy(cube), torch.from_numpy(edge)


def attributes(cube, gain, shift):
    """Clipped energy of the cube under another gain."""
    scaled = cube * gain
    moved = scaled + shift
    energy = moved * moved
    clipped = energy.clamp(max=4.0)
    return clipped - 0.5


def sample_patches(volume, edge, n, gen, size=9):
    z = torch.randint(0, SHAPE[0] - size, (n,), generator=gen).tolist()
    y = torch.randint(0, SHAPE[1] - size, (n,), generator=gen).tolist()
    x = torch.randint(0, SHAPE[2] - size, (n,), generator=gen).tolist()
    patches = torch.stack([volume[a:a + size, b:b + size, c:c + size] for a, b, c in zip(z, y, x)])
    labels = torch.stack([edge[b:b + size, c:c + size].amax() for b, c in zip(y, x)])
    return patches.flatten(1), labels


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=90)
    steps = parser.parse_args().steps
    torch.manual_seed(31)
    torch.set_num_threads(2)
    gen = torch.Generator().manual_seed(31)
    cube, edge = make_cube(31)
    model = nn.Sequential(nn.Linear(729, 96), nn.ReLU(), nn.Linear(96, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    criterion = nn.BCEWithLogitsLoss()
    began = time.perf_counter()
    for step in range(steps):
        gain = 0.8 + 0.4 * torch.rand(1, generator=gen).item()
        shift = 0.1 * torch.randn(1, generator=gen).item()
        volume = attributes(cube, gain, shift)
        patches, labels = sample_patches(volume, edge, 64, gen)
        optimizer.zero_grad()
        loss = criterion(model(patches).squeeze(1), labels)
        loss.backward()
        optimizer.step()
        if step % 30 == 29:
            print("step", step + 1, "loss", round(loss.item(), 4))
    print("%.1f ms per step" % (1e3 * (time.perf_counter() - began) / steps))
