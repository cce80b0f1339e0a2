# truth: none
# about: reels are copied to a new byte order in large blocks and forced to the disk once per reel; the disk sets the pace and there is nothing to train and nothing to gain
# needs: numpy
"""Re-blocks field tapes (big-endian int16, as the recorders wrote them) to the order of the processing centre."""
import os
import tempfile
import zlib

import numpy as np

BLOCK = 8 << 20
REEL = 12 * BLOCK
REELS = 70


def blank_reel(path):
    rng = np.random.default_rng(1978)
    block = rng.integers(-2000, 2000, size=BLOCK // 2, dtype=np.int16).astype(">i2").tobytes()
    with open(path, "wb", buffering=0) as f:
        for _ in range(REEL // BLOCK):
            f.write(block)


def convert(source, target, buffer):
    check = 0
    words = np.frombuffer(buffer, dtype=np.int16)
    with open(source, "rb", buffering=0) as tape, open(target, "wb", buffering=0) as out:
        while got := tape.readinto(buffer):
            words[:got // 2].byteswap(inplace=True)
            check = zlib.crc32(memoryview(buffer)[:4096], check)
            out.write(memoryview(buffer)[:got])
        os.fsync(out.fileno())
    return check


def main():
    buffer = bytearray(BLOCK)
    with tempfile.TemporaryDirectory(prefix="tapes") as folder:
        reel, copy = os.path.join(folder, "reel.seg"), os.path.join(folder, "reel.le")
        blank_reel(reel)
        for n in range(REELS):
            print(f"reel {n}: {REEL >> 20} MB, check {convert(reel, copy, buffer):08x}", flush=True)


if __name__ == "__main__":
    main()
