#!/usr/bin/env python3
# truth: gil_contention
# about: while the classifier trains, a second Python thread fingerprints the stories of the news wire (shingles, minhash, all in plain
# about: Python); it never lets go of the GIL by itself, so after every operator the training thread waits a switch interval for it
# also: sync_stall
# cure: --apart
# needs: torch numpy
"""Section classifier for a news desk, with the desk's duplicate finder running beside it."""
import argparse
import multiprocessing
import threading
import time
import zlib

import numpy as np
import torch
from torch import nn

WORDS, LENGTH, SECTIONS = 20000, 60, 12
PRIME = (1 << 31) - 1


def newsroom(count):
    rng = np.random.default_rng(41)
    section = rng.integers(0, SECTIONS, count)
    common = rng.integers(0, WORDS, (count, LENGTH))
    topical = section[:, None] * 300 + rng.integers(0, 300, (count, LENGTH))
    text = np.where(rng.random((count, LENGTH)) < 0.3, topical, common)
    return torch.from_numpy(text), torch.from_numpy(section)


def find_duplicates(stories, stop, found):
    """Minhash signatures of all that comes over the wire; equal bands are duplicates."""
    salts = [(7919 * i + 1, 104729 * i + 7) for i in range(16)]
    bands, seen, doubles = {}, 0, 0
    while not stop.is_set():
        words = stories[seen % len(stories)]
        shingles = [zlib.crc32((words[i] + " " + words[i + 1] + " " + words[i + 2]).encode())
                    for i in range(len(words) - 2)]
        signature = tuple(min((a * s + b) % PRIME for s in shingles) for a, b in salts)
        for band in range(4):
            key = (band, signature[4 * band:4 * band + 4])
            if key in bands:
                doubles += 1
            bands[key] = seen
        seen += 1
    found.put((seen, doubles))


def start_duplicates(apart, stories):
    """A thread beside the training, or a process of its own."""
    if apart:
        ctx = multiprocessing.get_context("fork")
        stop, found = ctx.Event(), ctx.Queue()
        who = ctx.Process(target=find_duplicates, args=(stories, stop, found), daemon=True)
    else:
        import queue
        stop, found = threading.Event(), queue.Queue()
        who = threading.Thread(target=find_duplicates, args=(stories, stop, found), daemon=True)
    who.start()
    return who, stop, found


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=100)
    ap.add_argument("--apart", action="store_true", help="duplicate finder in its own process")
    args = ap.parse_args()
    torch.manual_seed(13)
    text, section = newsroom(6000)
    wire = [[f"w{int(w)}" for w in row] for row in text[:1500]]
    who, stop, found = start_duplicates(args.apart, wire)
    model = nn.Sequential(nn.EmbeddingBag(WORDS, 64, sparse=True), nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, SECTIONS))
    opt = torch.optim.SGD(model.parameters(), lr=0.5)
    pick = torch.randint(0, len(section), (args.steps, 384))
    right, begin = 0, time.perf_counter()
    for step in range(args.steps):
        x, y = text[pick[step]], section[pick[step]]
        opt.zero_grad(set_to_none=True)
        out = model(x)
        loss = nn.functional.cross_entropy(out, y)
        loss.backward()
        opt.step()
        if step >= args.steps - 20:
            right += int((out.argmax(1) == y).sum())
    took = time.perf_counter() - begin
    stop.set()
    seen, doubles = found.get(timeout=30)
    who.join()
    print(f"right {right / (20 * 384):.3f}; wire: {seen} stories, {doubles} doubles; "
          f"{args.steps} steps, {1e3 * took / args.steps:.1f} ms each, {took:.2f} s")


if __name__ == "__main__":
    main()
