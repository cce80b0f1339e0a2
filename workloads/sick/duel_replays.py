# truth: data_loading_bound
# about: every sample unpacks the recording of a duel from its own compressed file and replays it, in the training process itself (num_workers=0), while the second core is idle
# also: preprocessing_bound
# cure: --workers 1
# whatif: workers=1
# advice: num_workers
# needs: torch numpy cores:2
"""Who wins a duel? A small convolutional net over the heat maps of recorded duels."""
import argparse
import json
import pathlib
import tempfile
import time
import zlib

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIZE, EVENTS, DUELS = 24, 260, 320


def record_duels(folder):
    rng = np.random.default_rng(64)
    for k in range(DUELS):
        better = int(rng.integers(2))
        where = rng.integers(0, SIZE, (EVENTS, 2))
        who = (rng.random(EVENTS) < 0.5 + 0.1 * (1 if better else -1)).astype(int)
        events = [{"t": t * 33, "who": w, "x": x, "y": y, "act": "hit" if (x * y + t) % 3 else "move"}
                  for t, (w, (x, y)) in enumerate(zip(who.tolist(), where.tolist()))]
        body = json.dumps({"duel": k, "winner": better, "events": events}).encode()
        (folder / f"{k:05d}.duel").write_bytes(zlib.compress(body))


class Duels(Dataset):
    def __init__(self, folder):
        self.files = sorted(folder.glob("*.duel"))

    def __len__(self):
        return len(self.files)

    def __getitem__(self, k):
        duel = json.loads(zlib.decompress(self.files[k].read_bytes()))
        maps = np.zeros((4, SIZE, SIZE), np.float32)
        for event in duel["events"]:
            plane = 2 * event["who"] + (event["act"] == "hit")
            maps[plane, event["y"], event["x"]] += 1.0
        return torch.from_numpy(maps), duel["winner"]


def block(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1, stride=2), nn.BatchNorm2d(b), nn.ReLU(inplace=True))


def epochs(loader, count):
    for _ in range(count):
        for batch in loader:
            yield batch


def main(workers):
    torch.set_num_threads(1)
    torch.manual_seed(64)
    net = nn.Sequential(nn.Conv2d(4, 32, 3, padding=1), nn.ReLU(), block(32, 64), block(64, 64),
                        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        record_duels(folder)
        loader = DataLoader(Duels(folder), batch_size=32, shuffle=True, num_workers=workers,
                            persistent_workers=workers > 0)
        began = time.perf_counter()
        for step, (maps, winner) in enumerate(epochs(loader, 14), 1):
            loss = nn.functional.cross_entropy(net(maps), winner)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 35 == 0:
                print(f"{step:4d} {loss.item():.4f}")
        took = time.perf_counter() - began
    print(f"{step} steps, {1000 * took / step:.2f} ms a step")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=0)
    main(parser.parse_args().workers)
