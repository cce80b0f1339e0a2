"""What a call gave is kept, and given again after a wait instead of the work.

The first calls are real and timed. Later ones get what those gave, in turn, after `left`
of the time that one took, and at least `least_ns`: computing where it computed, asleep
where it waited. Computing is CPU time, then and now: what a call waited for a core is
neither, and will be waited for again where others have the cores. Workers of a loader share
what the first of them kept, by a file.
"""

from __future__ import annotations

import os
import pickle
import time
from typing import Any, Callable, Optional

_now = time.perf_counter_ns
_cpu = time.thread_time_ns

_CALLS = 48
_ENOUGH_NS = 1_500_000_000  # of real calls; then a few will do
_FEW = 6
_MOST_BYTES = 192 << 20
_SLOW = 4  # times the median
_SHORTEST = 60_000  # ns: no sleep is shorter


def busy(ns: int) -> None:
    """So much CPU time of this thread."""
    end = _cpu() + ns
    while _cpu() < end:
        pass


def _delay() -> int:
    """What this thread has waited for a core so far; 0 where the kernel does not tell."""
    try:
        fd = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return int(os.read(fd, 100).split()[1])
        finally:
            os.close(fd)
    except (OSError, ValueError, IndexError):
        return 0


def size_of(o: Any, depth: int = 0) -> int:
    """Bytes of the tensors and arrays in it."""
    n = getattr(o, "nbytes", None)
    if isinstance(n, int):
        return n
    if hasattr(o, "element_size") and hasattr(o, "nelement"):
        return int(o.element_size() * o.nelement())
    if depth < 4 and isinstance(o, dict):
        return sum(size_of(v, depth + 1) for v in o.values())
    if depth < 4 and isinstance(o, (list, tuple)):
        return sum(size_of(v, depth + 1) for v in o)
    return 64


def fresh(o: Any, deep: bool, depth: int = 0) -> Any:
    """Containers of their own; `deep`: tensors and arrays too."""
    kind = type(o)
    if depth < 4 and kind is dict:
        return {k: fresh(v, deep, depth + 1) for k, v in o.items()}
    if depth < 4 and kind is list:
        return [fresh(v, deep, depth + 1) for v in o]
    if depth < 4 and isinstance(o, tuple):
        made = [fresh(v, deep, depth + 1) for v in o]
        return kind(*made) if hasattr(o, "_fields") else tuple(made)
    if deep and hasattr(o, "clone"):
        return o.clone()
    if deep and kind.__module__ == "numpy" and hasattr(o, "copy"):
        return o.copy()
    return o


class Memo:
    def __init__(
        self,
        left: float,
        least_ns: float = 0,
        per_mb_ns: float = 0,
        even: bool = False,
        deep: bool = False,
        calls: int = _CALLS,
        file: Optional[str] = None,
        on_ready: Optional[Callable[[], None]] = None,
    ) -> None:
        self.left, self.least_ns, self.per_mb_ns = left, least_ns, per_mb_ns
        self.even, self.deep, self.calls = even, deep, calls
        self.file, self.on_ready = file, on_ready
        self.kept: list[tuple[int, int, Any]] = []  # time, of it CPU time, result
        self.waits: list[tuple[int, int]] = []  # busy, asleep
        self.spent = self.bytes = self.turn = 0
        self.ready = False

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if self.ready or (self.file and self._load()):
            return self._again()
        # The clock runs while delays are looked at: whoever loses the core there has
        # both. A look takes some microseconds, less than any sleep.
        start, delay, cpu = _now(), _delay(), _cpu()
        result = function(*args, **kwargs)
        cpu, delay = _cpu() - cpu, _delay() - delay
        asleep = _now() - start - delay - cpu
        self._keep(cpu + (asleep if asleep >= _SHORTEST else 0), cpu, result)
        return result

    # ---- learning ----

    def _keep(self, wall: int, cpu: int, result: Any) -> None:
        self.spent += wall
        self.bytes += size_of(result)
        self.kept.append((wall, min(cpu, wall), fresh(result, self.deep)))
        few = len(self.kept) >= _FEW and (
            self.spent > _ENOUGH_NS or self.bytes > _MOST_BYTES
        )
        if len(self.kept) >= self.calls or few:
            self._settle()
            if self.file:
                self._store()

    def _settle(self) -> None:
        if len(self.kept) > 2:  # the first is cold: imports, files, pages
            self.kept = self.kept[max(1, len(self.kept) // 8) :]
        walls = sorted(w for w, _, _ in self.kept)
        median = walls[len(walls) // 2]
        if self.even:
            self.kept = [k for k in self.kept if k[0] <= _SLOW * median]
        self.waits = [self._wait_of(*k) for k in self.kept]
        self._begin()

    def _wait_of(self, wall: int, cpu: int, result: Any) -> tuple[int, int]:
        least = self.least_ns + self.per_mb_ns * size_of(result) / (1 << 20)
        after = max(self.left * wall, min(least, wall))
        asleep = after * (1 - cpu / wall) if wall > 0 else 0
        if asleep < _SHORTEST:
            asleep = 0
        return int(after - asleep), int(asleep)

    def _begin(self) -> None:
        self.ready = True
        if self.on_ready:
            self.on_ready()

    # ---- between workers ----

    def _store(self) -> None:
        part = f"{self.file}.{os.getpid()}"
        try:
            with open(part, "wb") as file:
                pickle.dump((self.kept, self.waits), file, protocol=4)
            os.link(part, str(self.file))
        except Exception:  # another was first, or it cannot be pickled: to each its own
            pass
        try:
            os.unlink(part)
        except OSError:
            pass

    def _load(self) -> bool:
        if not os.path.exists(str(self.file)):
            return False
        try:
            with open(str(self.file), "rb") as file:
                self.kept, self.waits = pickle.load(file)
        except Exception:
            self.file = None
            return False
        self._begin()
        return True

    # ---- in effect ----

    def _again(self) -> Any:
        start = _cpu()
        i = self.turn % len(self.kept)
        self.turn += 1
        result = fresh(self.kept[i][2], self.deep)
        work, asleep = self.waits[i]
        if asleep:
            time.sleep(asleep / 1e9)
        busy(start + work - _cpu())
        return result
