# truth: epoch_boundary_stall
# about: an epoch has only ten batches, and at each epoch the loader starts its four workers anew, each of which loads the reference plates and fits its whitening again before the first photo
# cure: --keep-workers
# gain: run
# env: OMP_NUM_THREADS=1
# needs: torch numpy
"""Stage of moult of ptarmigan (brown, mixed, white) in camera-trap photos; a small survey, so the epochs are short."""
import argparse
import os
import tempfile

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

STAGES = 3
SIDE = 48


class TrapPhotos(Dataset):
    def __init__(self, folder, count):
        self.folder, self.count = folder, count
        self.photos = np.load(os.path.join(folder, "photos.npy"), mmap_mode="r")
        self.stages = np.load(os.path.join(folder, "stages.npy"))
        self.whiten = None

    def fit_whitening(self):
        plates = np.load(os.path.join(self.folder, "plates.npy")).astype(np.float32) / 255
        cov = np.cov(plates.reshape(-1, plates.shape[-1]).T)
        values, vectors = np.linalg.eigh(cov)
        self.whiten = (vectors / np.sqrt(values + 1e-3)).astype(np.float32)

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        photo = self.photos[i].astype(np.float32) / 255
        photo = (photo - 0.5) @ self.whiten
        return torch.from_numpy(photo).permute(2, 0, 1).contiguous(), int(self.stages[i])


def start_worker(worker_id):
    torch.utils.data.get_worker_info().dataset.fit_whitening()


def survey(folder, count, seed=23):
    rng = np.random.default_rng(seed)
    stages = rng.integers(0, STAGES, count)
    photos = rng.integers(0, 120, size=(count, SIDE, SIDE, 3), dtype=np.uint8)
    for i, stage in enumerate(stages):
        photos[i, 12:36, 12:36] += np.uint8(60 * stage)
    np.save(os.path.join(folder, "photos.npy"), photos)
    np.save(os.path.join(folder, "stages.npy"), stages)
    np.save(os.path.join(folder, "plates.npy"), rng.integers(0, 255, size=(400, 40, 40, 3), dtype=np.uint8))


class MoultNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1)
        self.deep = nn.Conv2d(16, 32, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(32)
        self.out = nn.Linear(32, STAGES)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.stem(x)), 2)
        x = F.relu(self.norm(self.deep(x)))
        return self.out(x.mean((2, 3)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=18)
    parser.add_argument("--keep-workers", action="store_true", help="keep the loader's workers between epochs")
    args = parser.parse_args()
    torch.manual_seed(8)
    with tempfile.TemporaryDirectory(prefix="ptarmigan") as folder:
        survey(folder, 320)
        loader = DataLoader(TrapPhotos(folder, 320), batch_size=32, shuffle=True, num_workers=4,
                            worker_init_fn=start_worker, persistent_workers=args.keep_workers)
        net = MoultNet()
        optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
        for epoch in range(args.epochs):
            loss_sum = 0.0
            for photos, stages in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(net(photos), stages)
                loss.backward()
                optimizer.step()
                loss_sum += loss.item()
            if epoch % 6 == 5:
                print(f"epoch {epoch + 1:2d}  loss {loss_sum / len(loader):.4f}")


if __name__ == "__main__":
    main()
