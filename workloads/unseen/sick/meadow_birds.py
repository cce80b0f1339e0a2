# truth: memory_leak
# about: for a plot at the end the features of every batch are appended to a list with all their places, a few megabytes a step, though the plot shows the last few hundred rows only
# cure: cured/meadow_birds.py
# gain: none
# needs: torch numpy
"""Recognises birds of the meadow in small pictures of feeder cameras."""
import argparse
import os
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SPECIES = 8
SIDE = 32


def take_pictures(folder, count, seed):
    rng = np.random.default_rng(seed)
    colours = rng.integers(60, 200, size=(SPECIES, 3))
    species = rng.integers(SPECIES, size=count)
    pictures = rng.integers(0, 50, size=(count, 3, SIDE, SIDE), dtype=np.uint8)
    for number, kind in enumerate(species):
        top, left = rng.integers(0, SIDE - 12, size=2)
        pictures[number, :, top:top + 12, left:left + 12] += colours[kind].astype(np.uint8)[:, None, None]
    np.savez(os.path.join(folder, "feeder.npz"), pictures=pictures, species=species)


class Feeder(Dataset):
    def __init__(self, folder):
        with np.load(os.path.join(folder, "feeder.npz")) as stored:
            self.pictures = stored["pictures"]
            self.species = stored["species"]

    def __len__(self):
        return len(self.species)

    def __getitem__(self, number):
        return torch.from_numpy(self.pictures[number]).float().div_(255.0), int(self.species[number])


class Watcher(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.eye = nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.ReLU(),
                                 nn.Conv2d(width, width, 3, padding=1), nn.ReLU())
        self.tell = nn.Linear(width * 16, SPECIES)

    def forward(self, pictures):
        features = self.eye(pictures)
        return self.tell(nn.functional.adaptive_avg_pool2d(features, 4).flatten(1)), features


class FeatureMap:
    """Remembers features and species for a picture of how the classes lie apart."""

    def __init__(self, rows):
        self.rows = rows
        self.features = []
        self.species = []

    def remember(self, features, species):
        self.features.append(features.detach())
        self.species.append(species)

    def spread(self):
        """Distance of the classes' centres, over the last rows."""
        features = torch.cat([part.mean(dim=(2, 3)) for part in self.features[-self.rows // 32:]])[-self.rows:]
        species = torch.cat(self.species[-self.rows // 32:])[-self.rows:]
        centres = torch.stack([features[species == kind].mean(0) for kind in range(SPECIES)])
        return torch.pdist(centres).mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=int, default=1600)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--width", type=int, default=24)
    parser.add_argument("--epochs", type=int, default=5)
    args = parser.parse_args()

    torch.manual_seed(37)
    with tempfile.TemporaryDirectory(prefix="meadow") as folder:
        take_pictures(folder, args.pictures, seed=37)
        loader = DataLoader(Feeder(folder), batch_size=args.batch, shuffle=True)
    model = Watcher(args.width)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    plot = FeatureMap(rows=320)
    for epoch in range(args.epochs):
        losses = []
        for pictures, species in loader:
            scores, features = model(pictures)
            loss = nn.functional.cross_entropy(scores, species)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            plot.remember(features, species)
            losses.append(loss.item())
        print(f"epoch {epoch}: {sum(losses) / len(losses):.4f}")
    print(f"classes lie {plot.spread():.3f} apart")


if __name__ == "__main__":
    main()
