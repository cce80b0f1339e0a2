#!/usr/bin/env python3
# truth: none
# about: looks for interference in voltage dumps that are far larger than memory, so they are read past the page cache in blocks of 4 MB by
# about: two threads ahead of the training; the disk gives what it can, there is next to nothing to compute
# needs: torch numpy
"""Online interference filter: every dump is read, thinned out and shown once to a linear model."""
import mmap
import os
import queue
import shutil
import tempfile
import threading
import time

import numpy as np
import torch
from torch import nn

BLOCK, BLOCKS, PER_STEP, STEPS = 4 << 20, 48, 4, 360


def record(path):
    """A piece of the archive; it is gone over again and again in the place of the petabytes."""
    rng = np.random.default_rng(103)
    noise = rng.integers(0, 256, BLOCK // 8, dtype=np.uint8)
    with open(path, "wb") as f:
        for i in range(BLOCKS):
            block = np.tile(np.roll(noise, i * 4099), 8)
            if i % 3 == 0:
                block[::64] = 255
            f.write(block.tobytes())
        f.flush()
        os.fsync(f.fileno())
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class Dumps:
    """Blocks in the order asked for, read ahead into a handful of buffers that go round."""

    def __init__(self, path, count, readers=2):
        try:
            self.fd = os.open(path, os.O_RDONLY | getattr(os, "O_DIRECT", 0))
        except OSError:
            self.fd = os.open(path, os.O_RDONLY)
        self.free, self.full = queue.Queue(), queue.Queue()
        for _ in range(3 * PER_STEP):
            self.free.put(mmap.mmap(-1, BLOCK))
        self.todo = queue.Queue()
        for i in range(count):
            self.todo.put(i % BLOCKS)
        self.count = count
        self.threads = [threading.Thread(target=self.read) for _ in range(readers)]
        for t in self.threads:
            t.start()

    def read(self):
        while True:
            buffer = self.free.get()
            try:
                number = self.todo.get_nowait()
            except queue.Empty:
                return
            os.preadv(self.fd, [buffer], number * BLOCK)
            self.full.put((number, buffer))

    def close(self):
        for _ in self.threads:
            self.free.put(None)
        for t in self.threads:
            t.join()
        os.close(self.fd)


def main():
    torch.manual_seed(59)
    folder = tempfile.mkdtemp(prefix="dumps")
    try:
        path = os.path.join(folder, "dump.raw")
        record(path)
        model = nn.Linear(512, 2)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        dumps = Dumps(path, STEPS * PER_STEP)
        recent, begin = 0.0, time.perf_counter()
        for step in range(STEPS):
            x, y = np.empty((PER_STEP, 512), np.float32), np.empty(PER_STEP, np.int64)
            for k in range(PER_STEP):
                number, buffer = dumps.full.get()
                lines = np.frombuffer(buffer, np.uint8).reshape(-1, 512)[::256]
                x[k] = lines.mean(0, dtype=np.float32)
                y[k] = number % 3 == 0
                del lines
                dumps.free.put(buffer)
            opt.zero_grad(set_to_none=True)
            loss = nn.functional.cross_entropy(model(torch.from_numpy(x) / 64 - 2), torch.from_numpy(y))
            loss.backward()
            opt.step()
            recent = 0.95 * recent + 0.05 * float(loss.detach())
        took = time.perf_counter() - begin
        dumps.close()
        print(f"loss {recent:.3f}; {STEPS * PER_STEP * BLOCK / took / 1e6:.0f} MB/s; {STEPS} steps, {1e3 * took / STEPS:.1f} ms each, {took:.2f} s")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
