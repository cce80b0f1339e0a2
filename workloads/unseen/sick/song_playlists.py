#!/usr/bin/env python3
# truth: checkpoint_stall
# about: every eighth step the whole state (both song tables and the optimizer's sums, 128 MB) is written and synced in the loop
# cure: --save-every 80
# whatif: checkpoint=10
# gain: run
# needs: torch numpy
"""Song vectors from playlists: skip-gram with negative samples over a large catalogue."""
import argparse
import os
import shutil
import tempfile
import time

import numpy as np
import torch
from torch import nn

SONGS, WIDTH = 250_000, 32


def playlists(count, length):
    rng = np.random.default_rng(83)
    mood = rng.integers(0, 500, (count, 1)) * 500
    return torch.from_numpy((mood + rng.integers(0, 500, (count, length))) % SONGS)


class SkipGram(nn.Module):
    def __init__(self):
        super().__init__()
        self.song = nn.Embedding(SONGS, WIDTH, sparse=True)
        self.context = nn.Embedding(SONGS, WIDTH, sparse=True)
        nn.init.normal_(self.song.weight, std=0.1)
        nn.init.normal_(self.context.weight, std=0.1)

    def forward(self, centre, near, far):
        c = self.song(centre)
        good = (c * self.context(near)).sum(1)
        bad = torch.bmm(self.context(far), c.unsqueeze(2)).squeeze(2)
        return -(nn.functional.logsigmoid(good).mean() + nn.functional.logsigmoid(-bad).mean())


class Keeper:
    """The last two states survive a power cut."""

    def __init__(self, folder):
        self.folder = folder
        self.written = []

    def save(self, step, model, opt):
        path = os.path.join(self.folder, f"step-{step:06d}.pt")
        with open(path + ".part", "wb") as f:
            torch.save({"step": step, "model": model.state_dict(), "optimizer": opt.state_dict()}, f)
            f.flush()
            os.fsync(f.fileno())
        os.replace(path + ".part", path)
        self.written.append(path)
        if len(self.written) > 2:
            os.remove(self.written.pop(0))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=240)
    ap.add_argument("--save-every", type=int, default=8)
    args = ap.parse_args()
    torch.manual_seed(37)
    lists = playlists(20_000, 30)
    model = SkipGram()
    opt = torch.optim.Adagrad(model.parameters(), lr=0.1)
    folder = tempfile.mkdtemp(prefix="songs")
    try:
        keeper = Keeper(folder)
        recent, saving, begin = 0.0, 0.0, time.perf_counter()
        for step in range(1, args.steps + 1):
            rows = torch.randint(0, len(lists), (512,))
            at = torch.randint(0, lists.shape[1] - 1, (512,))
            far = torch.randint(0, SONGS, (512, 16))
            opt.zero_grad(set_to_none=True)
            loss = model(lists[rows, at], lists[rows, at + 1], far)
            loss.backward()
            opt.step()
            recent = 0.95 * recent + 0.05 * float(loss.detach())
            if step % args.save_every == 0:
                t = time.perf_counter()
                keeper.save(step, model, opt)
                saving += time.perf_counter() - t
        took = time.perf_counter() - begin
        print(f"loss {recent:.3f}; saving {saving:.2f} s; {args.steps} steps, {1e3 * took / args.steps:.1f} ms each, {took:.2f} s")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
