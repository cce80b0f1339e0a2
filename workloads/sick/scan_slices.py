# truth: fd_leak
# about: the reader of the newer file format returns before it closes the descriptor, so every sample of that format leaves one open; someone raised the limit instead
# also: data_loading_bound metadata_bound
# cure: --close
# gain: none
# needs: torch
import argparse
import os
import resource
import struct
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIDE = 48


def write_scans(folder, count):
    rng = np.random.default_rng(11)
    for i in range(count):
        version = 1 if i % 5 == 0 else 2
        voxels = rng.integers(0, 1000, (SIDE, SIDE)).astype(np.int16)
        with open(os.path.join(folder, f"scan{i:04d}.raw"), "wb") as f:
            f.write(struct.pack("<4sHHH", b"SCAN", version, SIDE, SIDE))
            if version == 2:
                f.write(struct.pack("<f", 1000.0))
            f.write(voxels.tobytes())


def read_scan(path, close):
    fd = os.open(path, os.O_RDONLY)
    magic, version, h, w = struct.unpack("<4sHHH", os.read(fd, 10))
    if magic != b"SCAN":
        raise ValueError(path)
    if version == 2:
        (scale,) = struct.unpack("<f", os.read(fd, 4))
        voxels = np.frombuffer(os.read(fd, 2 * h * w), dtype=np.int16)
        if close:
            os.close(fd)
        return voxels.reshape(h, w).astype(np.float32) / scale
    voxels = np.frombuffer(os.read(fd, 2 * h * w), dtype=np.int16)
    os.close(fd)
    return voxels.reshape(h, w).astype(np.float32) / 1000


class Scans(Dataset):
    def __init__(self, folder, close):
        self.paths = sorted(os.path.join(folder, n) for n in os.listdir(folder))
        self.close = close

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        scan = torch.from_numpy(read_scan(self.paths[i], self.close))[None]
        return scan, (scan > 0.5).float()


class SmallUNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1 = nn.Sequential(nn.Conv2d(1, 12, 3, padding=1), nn.ReLU())
        self.down2 = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(12, 24, 3, padding=1), nn.ReLU())
        self.up = nn.ConvTranspose2d(24, 12, 2, stride=2)
        self.out = nn.Conv2d(24, 1, 3, padding=1)

    def forward(self, x):
        a = self.down1(x)
        return self.out(torch.cat([a, self.up(self.down2(a))], 1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--close", action="store_true")
    args = parser.parse_args()

    # "OSError: [Errno 24] Too many open files" on long runs
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        write_scans(folder, 320)
        loader = DataLoader(Scans(folder, args.close), batch_size=8, shuffle=True)
        net = SmallUNet()
        opt = torch.optim.Adam(net.parameters(), lr=1e-3)
        criterion = nn.BCEWithLogitsLoss()
        for epoch in range(7):
            total = 0.0
            for scan, mask in loader:
                opt.zero_grad()
                loss = criterion(net(scan), mask)
                loss.backward()
                opt.step()
                total += loss.item()
            print(f"epoch {epoch + 1}  loss {total / len(loader):.4f}")


if __name__ == "__main__":
    main()
