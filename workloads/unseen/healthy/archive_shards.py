# truth: none
# about: copies data shards into one archive and checks them by checksum, megabytes at a time; the time goes where such work has to spend it
"""Packs shards into one archive file with an index of SHA-256 sums, then verifies it."""
import hashlib
import json
import os
import random
import tempfile

CHUNK = 4 << 20
SHARDS, SHARD_CHUNKS = 5, 16


def make_shards(folder):
    rng = random.Random(99)
    block = rng.randbytes(CHUNK)
    for s in range(SHARDS):
        with open(os.path.join(folder, f"shard-{s:03d}"), "wb") as f:
            for k in range(SHARD_CHUNKS):
                turn = rng.randrange(CHUNK)
                f.write(block[turn:])
                f.write(block[:turn])
        yield f.name


def pack(shards, target):
    index = []
    buffer = bytearray(CHUNK)
    view = memoryview(buffer)
    with open(target, "wb", buffering=0) as out:
        for path in shards:
            digest = hashlib.sha256()
            start = out.tell()
            with open(path, "rb", buffering=0) as f:
                while n := f.readinto(buffer):
                    digest.update(view[:n])
                    out.write(view[:n])
            index.append({"name": os.path.basename(path), "start": start, "bytes": out.tell() - start,
                          "sha256": digest.hexdigest()})
        os.fsync(out.fileno())
    return index


def verify(target, index):
    with open(target, "rb") as f:
        for entry in index:
            f.seek(entry["start"])
            digest = hashlib.sha256()
            left = entry["bytes"]
            while left:
                data = f.read(min(CHUNK, left))
                digest.update(data)
                left -= len(data)
            if digest.hexdigest() != entry["sha256"]:
                raise SystemExit(f"{entry['name']} is damaged")


def main():
    with tempfile.TemporaryDirectory() as folder:
        shards = list(make_shards(folder))
        target = os.path.join(folder, "all.archive")
        for _ in range(3):  # one generation a night, the last one stays
            index = pack(shards, target)
            verify(target, index)
        print(json.dumps({"shards": len(index), "bytes": os.path.getsize(target)}))


if __name__ == "__main__":
    main()
