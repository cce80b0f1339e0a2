# truth: preprocessing_bound
# or: data_loading_bound
# about: the transform walks over every pixel in Python; two workers and the main process have filled both cores already
# also: data_loading_bound
# cure: --vectorised
# whatif: transform=220
# needs: torch numpy
import argparse

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


def jitter_slow(image):
    out = np.empty_like(image)
    for r in range(image.shape[0]):
        for c in range(image.shape[1]):
            out[r, c] = min(max(image[r, c] * 1.1 + 0.05, 0.0), 1.0)
    return out


def jitter_fast(image):
    return np.clip(image * 1.1 + 0.05, 0.0, 1.0)


class Pictures(Dataset):
    def __init__(self, count, transform):
        self.images = np.random.default_rng(0).random((count, 40, 40), dtype=np.float32)
        self.transform = transform

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return torch.from_numpy(self.transform(self.images[i])), i % 10


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vectorised", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    data = Pictures(1600, jitter_fast if args.vectorised else jitter_slow)
    loader = DataLoader(data, batch_size=16, num_workers=2, persistent_workers=True)
    model = torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(1600, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)
    )
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(2):
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
