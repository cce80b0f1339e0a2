# truth: data_loading_bound
# about: every clip is asked from the depot's object store, which answers after 3 ms (the sleep stands for that request), and the stream is read without workers, so the requests of a batch come one after the other between the steps
# also: io_wait
# advice: num_workers
# cure: --workers 4
# whatif: workers=4
# env: OMP_NUM_THREADS=1
# needs: torch numpy
"""Counts waiting passengers at tram stops.

The cameras drop grey-scale clips into the depot's store; the trainer streams
them in the order of the day's manifest.
"""
import argparse
import itertools
import time
import zlib

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

HEIGHT, WIDTH, FRAMES = 36, 48, 3


class DepotStore:
    """Keys to compressed clips. One request, one answer."""

    def __init__(self, clips, seed=2031):
        rng = np.random.default_rng(seed)
        self._objects = {}
        self.manifest = []
        for n in range(clips):
            people = int(rng.integers(0, 12))
            clip = rng.integers(0, 24, (FRAMES, HEIGHT, WIDTH), dtype=np.uint8)
            for _ in range(people):
                y, x = rng.integers(0, HEIGHT - 9), rng.integers(0, WIDTH - 5)
                clip[:, y:y + 9, x:x + 4] += np.uint8(90)
            key = f"stop-{n % 17:02d}/{n:05d}.clip"
            self._objects[key] = zlib.compress(clip.tobytes(), 1)
            self.manifest.append((key, people))

    def request(self, key):
        time.sleep(0.003)  # network round trip
        return self._objects[key]


class ClipStream(IterableDataset):
    def __init__(self, store):
        super().__init__()
        self.store = store

    def __iter__(self):
        info = get_worker_info()
        first, stride = (info.id, info.num_workers) if info else (0, 1)
        for key, people in itertools.islice(self.store.manifest, first, None, stride):
            pixels = np.frombuffer(zlib.decompress(self.store.request(key)), np.uint8)
            clip = pixels.reshape(FRAMES, HEIGHT, WIDTH).astype(np.float32) / 255
            yield clip, np.float32(people)


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(FRAMES, 24, 5, stride=2, padding=2)
        self.body = nn.Conv2d(24, 48, 3, padding=1)
        self.deep = nn.Conv2d(48, 48, 3, padding=1)
        self.head = nn.Conv2d(48, 1, 1)

    def forward(self, clip):
        x = F.relu(self.stem(clip))
        x = F.relu(self.body(x))
        x = F.relu(self.deep(x))
        return F.softplus(self.head(x) - 4).sum((1, 2, 3))


def main():
    cli = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    cli.add_argument("--workers", type=int, default=0)
    cli.add_argument("--batch", type=int, default=16)
    cli.add_argument("--batches", type=int, default=144)
    args = cli.parse_args()

    torch.manual_seed(5)
    stream = ClipStream(DepotStore(args.batch * args.batches))
    loader = DataLoader(stream, batch_size=args.batch, num_workers=args.workers)
    counter = Counter()
    sgd = torch.optim.SGD(counter.parameters(), lr=1e-4, momentum=0.9)
    errors = []
    for clip, people in loader:
        guess = counter(clip)
        loss = F.smooth_l1_loss(guess, people)
        sgd.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(counter.parameters(), 5.0)
        sgd.step()
        errors.append((guess.detach() - people).abs().mean().item())
        if len(errors) % 48 == 0:
            print(f"after {len(errors)} batches: off by {np.mean(errors[-48:]):.2f} passengers")


if __name__ == "__main__":
    main()
