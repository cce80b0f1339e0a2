"""Latencies by hour in a file of fixed size, one file per process, merged when read.

A file holds HOURS slots; an hour uses the slot of its number modulo HOURS. A slot is 64-bit
words: 8 of head (hour, requests, violations, failures, sum of internal and of user-facing
nanoseconds, most of each), then the buckets of two logarithmic histograms. Buckets are 2 %
apart, so percentiles are within 1 %. Only the owner of a file writes it; readers may see a
request half counted, never more.

An owner holds a lock (flock) on its file while it lives. Whoever comes by adds the files
that nobody holds to merged.hours and removes them. After its slots that file names the files
it contains, so that one killed between the two counts nothing twice.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import mmap
import os
import secrets
import threading
from pathlib import Path
from typing import Any, Iterator, Optional

HOURS = 48
BUCKETS = 1280
HEAD = 8
WORDS = HEAD + 2 * BUCKETS
SIZE = HOURS * WORDS * 8
FILES, MERGED = "requests-*.hours", "merged.hours"
LEAST_NS = 1000.0  # the first bucket ends here
GROWTH = math.log(1.02)

_HOUR, _COUNT, _VIOLATIONS, _FAILURES, _SUM, _SUM_USER, _MAX, _MAX_USER = range(HEAD)


def bucket_of(ns: float) -> int:
    if ns <= LEAST_NS:
        return 0
    return min(BUCKETS - 1, 1 + int(math.log(ns / LEAST_NS) / GROWTH))


def middle_of(bucket: int) -> float:
    """Nanoseconds in the middle of a bucket."""
    return LEAST_NS * math.exp((bucket - 0.5) * GROWTH) if bucket else LEAST_NS


def _new_file(directory: Path) -> int:
    """Locked, and made while nobody merges: who merges takes a file without a lock for one
    of the dead, and removes it some time after it has looked."""
    name = f"requests-{os.getpid()}-{secrets.token_hex(4)}.hours"
    with _alone_in(directory):
        fd = os.open(directory / name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(fd, fcntl.LOCK_EX)
    return fd


class HourFile:
    """The file of this process."""

    def __init__(self, directory: Path) -> None:
        self._fd = _new_file(directory)
        os.ftruncate(self._fd, SIZE)
        self._map = mmap.mmap(self._fd, SIZE)
        self._words = memoryview(self._map).cast("Q")
        self._lock = threading.Lock()

    def __del__(self) -> None:
        # Lets the lock go, unless another process has inherited it: a fork's parent.
        with contextlib.suppress(AttributeError, OSError):
            os.close(self._fd)

    def add(
        self, hour: int, internal_ns: int, user_ns: int, violation: bool, failed: bool
    ) -> None:
        at = hour % HOURS * WORDS
        w = self._words
        with self._lock:
            if w[at + _HOUR] != hour:
                w[at : at + WORDS] = memoryview(bytes(WORDS * 8)).cast("Q")
                w[at + _HOUR] = hour
            w[at + HEAD + bucket_of(internal_ns)] += 1
            w[at + HEAD + BUCKETS + bucket_of(user_ns)] += 1
            w[at + _SUM] += internal_ns
            w[at + _SUM_USER] += user_ns
            w[at + _MAX] = max(w[at + _MAX], internal_ns)
            w[at + _MAX_USER] = max(w[at + _MAX_USER], user_ns)
            w[at + _VIOLATIONS] += violation
            w[at + _FAILURES] += failed
            w[at + _COUNT] += 1


class Hour:
    """The sum of slots: of one hour over processes, or of many hours."""

    def __init__(self) -> None:
        self.words = [0] * WORDS

    def add(self, slot: Any) -> None:
        most = (
            max(self.words[_MAX], slot[_MAX]),
            max(self.words[_MAX_USER], slot[_MAX_USER]),
        )
        self.words = [a + b for a, b in zip(self.words, slot)]
        self.words[_MAX], self.words[_MAX_USER] = most

    def percentile(self, q: float, user: bool) -> Optional[float]:
        """Seconds below which the share q of the requests lies."""
        start = HEAD + BUCKETS * user
        counts = self.words[start : start + BUCKETS]
        rank = math.ceil(q * sum(counts))
        most = self.words[_MAX_USER if user else _MAX]
        seen = 0
        for bucket, count in enumerate(counts):
            seen += count
            if count and seen >= rank:
                return min(middle_of(bucket), most) / 1e9
        return None

    def latency(self, user: bool) -> dict[str, Optional[float]]:
        count = self.words[_COUNT]
        total = self.words[_SUM_USER if user else _SUM]
        return {
            "mean_s": total / count / 1e9 if count else None,
            "p50_s": self.percentile(0.50, user),
            "p95_s": self.percentile(0.95, user),
            "p99_s": self.percentile(0.99, user),
            "max_s": self.words[_MAX_USER if user else _MAX] / 1e9 if count else None,
        }

    def summary(self) -> dict[str, Any]:
        user = self.latency(True)
        return {
            "requests_processed": self.words[_COUNT],
            "sla_violations": self.words[_VIOLATIONS],
            "failures": self.words[_FAILURES],
            "average_latency": user["mean_s"],
            "p50_latency": user["p50_s"],
            "p95_latency": user["p95_s"],
            "p99_latency": user["p99_s"],
            "user_facing": user,
            "internal": self.latency(False),
        }


# ---- All files of a directory ----------------------------------------------------------


def _add_slots(hours: dict[int, Hour], data: bytes) -> None:
    words = memoryview(data[:SIZE]).cast("Q")
    for at in range(0, HOURS * WORDS, WORDS):
        if words[at + _COUNT]:
            hours.setdefault(words[at + _HOUR], Hour()).add(words[at : at + WORDS])


def _read_merged(directory: Path) -> tuple[dict[int, Hour], set[str]]:
    """The hours of merged.hours, and the names of the files it contains."""
    hours: dict[int, Hour] = {}
    with contextlib.suppress(OSError):
        data = (directory / MERGED).read_bytes()
        if len(data) >= SIZE:
            _add_slots(hours, data)
            return hours, set(data[SIZE:].decode("ascii", "replace").split())
    return hours, set()


def _write_merged(directory: Path, hours: dict[int, Hour], names: set[str]) -> None:
    newest = max(hours, default=0)
    slots = memoryview(bytearray(SIZE)).cast("Q")
    for number, hour in hours.items():
        if number > newest - HOURS:
            at = number % HOURS * WORDS
            hour.words[_HOUR] = number
            for i, word in enumerate(hour.words):
                slots[at + i] = word
    temporary = directory / f"{MERGED}-{os.getpid()}"
    temporary.write_bytes(slots.tobytes() + "\n".join(sorted(names)).encode())
    os.replace(temporary, directory / MERGED)


@contextlib.contextmanager
def _alone_in(directory: Path) -> Iterator[None]:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _if_dead(path: Path) -> Optional[bytes]:
    """What is in the file of a process that has ended; None while it lives."""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        fcntl.flock(file.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
        data = file.read()
        return data if len(data) in (0, SIZE) else None
    return None


def merge_dead(directory: Path) -> None:
    """The files of processes that have ended become one. Where that cannot be (no right
    to write there) they stay."""
    with contextlib.suppress(OSError), _alone_in(directory):
        hours, merged = _read_merged(directory)
        for name in merged:
            (directory / name).unlink(missing_ok=True)
        dead: set[str] = set()
        for path in directory.glob(FILES):
            data = _if_dead(path)
            if data is not None:
                dead.add(path.name)
                if data:
                    _add_slots(hours, data)
        if dead:
            _write_merged(directory, hours, dead)
            for name in dead:
                (directory / name).unlink(missing_ok=True)


def _read_files(directory: Path) -> dict[int, Hour]:
    hours, merged = _read_merged(directory)
    for path in directory.glob(FILES):
        with contextlib.suppress(OSError):
            data = path.read_bytes() if path.name not in merged else b""
            if len(data) == SIZE:
                _add_slots(hours, data)
    return hours


def read_hours(directory: Path) -> dict[int, Hour]:
    """All hours of all processes; damaged or foreign files are passed over."""
    merge_dead(directory)
    try:
        with _alone_in(directory):  # nobody merges meanwhile
            return _read_files(directory)
    except OSError:
        return _read_files(directory)


def remove_files(directory: Path) -> None:
    for pattern in (FILES, MERGED + "*"):
        for path in directory.glob(pattern):
            path.unlink(missing_ok=True)
