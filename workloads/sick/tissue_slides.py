# truth: data_loading_bound
# about: the tiles of a tissue slide lie in the hospital's object store (the sleep in its client stands for the round trip of a request), and the training loop fetches them by hand, one after the other, before each step
# also: io_wait
# cure: --ahead 8
# whatif: workers=8
# needs: torch numpy
"""Tumour or not, slide by slide: tiles are scored by a small network, attention pools the scores of a slide."""
import argparse
import collections
import concurrent.futures
import os
import shutil
import tempfile
import time

import numpy as np
import torch
from torch import nn

TILE, TILES = 32, 12
ROUND_TRIP = 0.004


class Store:
    """Client of the object store; the objects are files here."""

    def __init__(self, root):
        self.root = root

    def get(self, key):
        time.sleep(ROUND_TRIP)
        with open(os.path.join(self.root, key), "rb") as f:
            return f.read()


def fill(root, slides, seed=71):
    rng = np.random.default_rng(seed)
    tumour = rng.random(slides) < 0.5
    for slide in range(slides):
        tiles = rng.normal(150, 25, (TILES, 3, TILE, TILE))
        if tumour[slide]:
            tiles[rng.integers(0, TILES, 3), 0, 8:24, 8:24] += 45
        for number, tile in enumerate(np.clip(tiles, 0, 255).astype(np.uint8)):
            tile.tofile(os.path.join(root, "s%03d-t%02d.raw" % (slide, number)))
    return torch.from_numpy(tumour.astype(np.float32))


def read_tile(store, key):
    return np.frombuffer(store.get(key), np.uint8).reshape(3, TILE, TILE)


def keys(slide):
    return ["s%03d-t%02d.raw" % (slide, number) for number in range(TILES)]


def one_by_one(store, order):
    for slide in order:
        yield slide, np.stack([read_tile(store, key) for key in keys(slide)])


def read_ahead(store, order, threads):
    """The same, with the tiles of the next two slides under way in threads."""
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        waiting = collections.deque()
        order = iter(order)
        while True:
            while len(waiting) < 3:
                slide = next(order, None)
                if slide is None:
                    break
                waiting.append((slide, [pool.submit(read_tile, store, key) for key in keys(slide)]))
            if not waiting:
                return
            slide, parts = waiting.popleft()
            yield slide, np.stack([part.result() for part in parts])


class SlideNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.tile = nn.Sequential(nn.Conv2d(3, 16, 3, stride=2), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(),
                                  nn.AdaptiveMaxPool2d(2), nn.Flatten(), nn.Linear(128, 48), nn.Tanh())
        self.attention = nn.Linear(48, 1)
        self.out = nn.Linear(48, 1)

    def forward(self, tiles):
        h = self.tile(tiles)
        weight = self.attention(h).softmax(0)
        return self.out((weight * h).sum(0))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--ahead", type=int, default=0, help="threads that fetch ahead")
    ap.add_argument("--slides", type=int, default=60)
    args = ap.parse_args()
    torch.manual_seed(71)
    root = tempfile.mkdtemp(prefix="slides")
    try:
        tumour = fill(root, args.slides)
        store = Store(root)
        net = SlideNet()
        opt = torch.optim.SGD(net.parameters(), 0.02, momentum=0.9)
        began, steps = time.perf_counter(), 0
        for epoch in range(2):
            order = torch.randperm(args.slides).tolist()
            stream = read_ahead(store, order, args.ahead) if args.ahead else one_by_one(store, order)
            total = 0.0
            for slide, raw in stream:
                tiles = torch.from_numpy(raw).float().sub_(150).div_(30)
                loss = nn.functional.binary_cross_entropy_with_logits(net(tiles), tumour[slide:slide + 1])
                opt.zero_grad(set_to_none=True)
                loss.backward()
                opt.step()
                total += loss.item()
                steps += 1
            print("pass %d: loss %.4f" % (epoch, total / args.slides))
        took = time.perf_counter() - began
        print("%d steps, %.1f s, %.2f ms each" % (steps, took, 1e3 * took / steps))
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
