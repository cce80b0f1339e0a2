# truth: none
# about: writes a spool of telemetry, pushes it to the disk, and reads it back once from beginning to end in blocks of four megabytes to see that the headers are in order: bound by the disk, one pass, nothing to gain
# needs: numpy
"""Writes a spool file and verifies what the disk has of it, before the source may be deleted."""
import os
import tempfile
import time

import numpy as np

BLOCK = 4 << 20
FRAME = 1 << 14


def write_spool(path, blocks):
    rng = np.random.default_rng(61)
    payload = rng.integers(0, 256, BLOCK, dtype=np.uint8)
    heads = payload.reshape(-1, FRAME)[:, :8].view(np.uint64)[:, 0]
    with open(path, "wb", buffering=0) as out:
        for b in range(blocks):
            heads[:] = np.arange(b * len(heads), (b + 1) * len(heads))
            out.write(payload)
        os.fsync(out.fileno())
        os.posix_fadvise(out.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)   # the check must see the disk, not memory


def check_spool(path):
    buffer = np.empty(BLOCK, np.uint8)
    heads = buffer.reshape(-1, FRAME)[:, :8].view(np.uint64)[:, 0]
    seen = 0
    with open(path, "rb", buffering=0) as src:
        os.posix_fadvise(src.fileno(), 0, 0, os.POSIX_FADV_SEQUENTIAL)
        while True:
            got = src.readinto(memoryview(buffer))
            if not got:
                return seen
            frames = got // FRAME
            if got % FRAME or not np.array_equal(heads[:frames], np.arange(seen, seen + frames, dtype=np.uint64)):
                raise SystemExit(f"frame {seen} or one after it is damaged")
            seen += frames


def main():
    handle, path = tempfile.mkstemp(suffix=".spool")
    os.close(handle)
    try:
        start = time.perf_counter()
        write_spool(path, BLOCKS)
        written = time.perf_counter()
        frames = check_spool(path)
        done = time.perf_counter()
        size = os.path.getsize(path) / 1e6
        print(f"{frames} frames, {size:.0f} MB: written in {written - start:.2f} s, checked in {done - written:.2f} s")
    finally:
        os.unlink(path)


BLOCKS = 192
if __name__ == "__main__":
    main()
