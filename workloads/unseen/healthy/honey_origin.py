# truth: none
# about: spectra of honeys come in large reads from shard files through one loader process that is always ahead; the transformer takes the step
# needs: torch numpy
"""Where a honey comes from, by its infrared spectrum: an iterable data set over shards and a small transformer."""
import pathlib
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

BANDS, PATCH, PLACES, SHARD = 512, 16, 6, 256


def measure(folder, shards, seed=97):
    rng = np.random.default_rng(seed)
    place = rng.normal(0, 1, (PLACES, 9)).astype(np.float32)
    bumps = np.exp(-((np.linspace(0, 1, BANDS)[None] - np.linspace(0.05, 0.95, 9)[:, None]) / 0.04) ** 2)
    paths = []
    for number in range(shards):
        label = rng.integers(0, PLACES, SHARD)
        spectra = (place[label] + rng.normal(0, 0.5, (SHARD, 9))) @ bumps + rng.normal(0, 0.2, (SHARD, BANDS))
        path = folder / ("shard%02d.npz" % number)
        np.savez(path, spectra=spectra.astype(np.float32), label=label)
        paths.append(path)
    return paths


class Shards(IterableDataset):
    """Ready batches; a shard is read whole and shuffled."""

    def __init__(self, paths, batch, passes):
        self.paths, self.batch, self.passes = paths, batch, passes

    def __iter__(self):
        rng = np.random.default_rng(98)
        for _ in range(self.passes):
            for number in rng.permutation(len(self.paths)):
                with np.load(self.paths[number]) as shard:
                    spectra, label = shard["spectra"], shard["label"]
                spectra = (spectra - spectra.mean(1, keepdims=True)) / spectra.std(1, keepdims=True)
                order = rng.permutation(len(label))
                for at in range(0, len(order), self.batch):
                    pick = order[at:at + self.batch]
                    yield torch.from_numpy(spectra[pick]), torch.from_numpy(label[pick])


class SpectrumReader(nn.Module):
    def __init__(self, width=128, layers=2):
        super().__init__()
        self.patch = nn.Linear(PATCH, width)
        self.place = nn.Parameter(0.02 * torch.randn(BANDS // PATCH, width))
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)
        self.body = nn.TransformerEncoder(layer, layers)
        self.out = nn.Linear(width, PLACES)

    def forward(self, x):
        x = self.patch(x.unflatten(1, (BANDS // PATCH, PATCH))) + self.place
        return self.out(self.body(x).mean(1))


def main():
    torch.manual_seed(97)
    with tempfile.TemporaryDirectory(prefix="honey") as name:
        paths = measure(pathlib.Path(name), 9)
        loader = DataLoader(Shards(paths[:-1], 64, 5), batch_size=None, num_workers=1)
        net = SpectrumReader()
        opt = torch.optim.Adam(net.parameters(), 1e-3)
        began = time.perf_counter()
        for step, (spectra, label) in enumerate(loader, 1):
            loss = nn.functional.cross_entropy(net(spectra), label)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            if step % 40 == 0:
                print("step %d: loss %.4f" % (step, loss.item()), flush=True)
        took = time.perf_counter() - began
        print("%d steps, %.1f s, %.2f ms each" % (step, took, 1e3 * took / step))
        net.eval()
        right = count = 0
        with torch.no_grad():
            for spectra, label in Shards(paths[-1:], 64, 1):
                right += int((net(spectra).argmax(1) == label).sum())
                count += len(label)
        print("%.1f %% of %d unseen honeys placed right" % (100 * right / count, count))


if __name__ == "__main__":
    main()
