# truth: metadata_bound
# about: every specimen is a folder of small text files, one per measurement, and each visit lists the folder, stats every file for its date and opens it for a handful of bytes, which costs far more than reading them
# or: small_reads
# also: data_loading_bound preprocessing_bound io_wait small_reads
# cure: cured/herbarium_drawers.py
# needs: torch numpy
"""Which family does a pressed plant belong to? Measurements as the curators typed them: drawer/specimen/NN.txt"""
import os
import random
import shutil
import tempfile

import numpy as np
import torch

MEASURES = 20
SPECIMENS = 260
FAMILIES = 9
BATCH = 26


def type_in(root):
    rng = np.random.default_rng(31)
    centres = rng.normal(size=(FAMILIES, MEASURES))
    for s in range(SPECIMENS):
        family = s % FAMILIES
        folder = os.path.join(root, f"drawer{s % 13:02d}", f"sheet{s:04d}-{family}")
        os.makedirs(folder)
        for m in range(MEASURES):
            with open(os.path.join(folder, f"{m:02d}.txt"), "w") as f:
                f.write(f"{centres[family, m] + rng.normal() * 0.7:.3f}\n")


def sheets(root):
    found = []
    for drawer in sorted(os.listdir(root)):
        inside = os.path.join(root, drawer)
        found += [os.path.join(inside, name) for name in sorted(os.listdir(inside))]
    return found


def read_sheet(folder):
    values = np.zeros(MEASURES, dtype=np.float32)
    newest = 0.0
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if not os.path.isfile(path):
            continue
        newest = max(newest, os.path.getmtime(path))
        with open(path, "rb") as f:
            values[int(name[:2])] = float(f.read())
    return values, newest


def batches(folders, rng):
    order = list(folders)
    rng.shuffle(order)
    for at in range(0, len(order), BATCH):
        part = order[at:at + BATCH]
        x = torch.from_numpy(np.stack([read_sheet(folder)[0] for folder in part]))
        y = torch.tensor([int(folder.rsplit("-", 1)[1]) for folder in part])
        yield x, y


def train(root, epochs):
    torch.manual_seed(8)
    rng = random.Random(8)
    folders = sheets(root)
    net = torch.nn.Sequential(torch.nn.Linear(MEASURES, 256), torch.nn.GELU(), torch.nn.Linear(256, 256), torch.nn.GELU(),
                              torch.nn.Dropout(0.1), torch.nn.Linear(256, FAMILIES))
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    for epoch in range(epochs):
        seen = []
        for x, y in batches(folders, rng):
            loss = torch.nn.functional.cross_entropy(net(x), y)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            seen.append(loss.item())
        if epoch % 10 == 0:
            print("epoch", epoch, "loss", round(sum(seen) / len(seen), 4))


if __name__ == "__main__":
    root = tempfile.mkdtemp(prefix="herbarium")
    try:
        type_in(root)
        train(root, epochs=80)
    finally:
        shutil.rmtree(root, ignore_errors=True)
