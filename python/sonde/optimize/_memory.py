"""sonde.optimize.memory: a block that stays below a limit, or ends with a clear error."""

from __future__ import annotations

import ctypes
import gc
import threading
from typing import Any, Callable, Optional

from . import _limits

MIB = 2.0**20


class MemoryLimitError(MemoryError):
    """More memory is used than the scope allows, and nothing more can be given back."""


def _trim() -> None:
    """Freed memory goes back to the system where the C library can do that."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError):
        pass


class MemoryScope:
    """See memory()."""

    def __init__(
        self,
        config: Any,
        limit_bytes: Optional[int],
        on_limit: Optional[Callable[["MemoryScope"], Any]],
        interval_s: float,
    ) -> None:
        total = _limits.total_bytes()
        self._own = limit_bytes is not None
        self.limit_bytes = limit_bytes
        if limit_bytes is None and total is not None:
            self.limit_bytes = int(config.max_memory_usage * total)
        self.on_limit, self.interval_s = on_limit, interval_s
        self.peak_bytes = 0
        self.relieved = 0  # times that garbage and caches went
        self._caches: list[Any] = []
        self._exceeded: Optional[str] = None
        self._told = False
        self._stop = threading.Event()
        self._watcher: Optional[threading.Thread] = None
        self._lock = threading.Lock()

    # ---- what it watches ----

    def used_bytes(self) -> Optional[int]:
        """With a limit of one's own, this process and its children; else what anybody
        uses of the cgroup or the machine."""
        return _limits.own_bytes() if self._own else _limits.used_bytes()

    def add_cache(self, cache: Any) -> Any:
        """Something with clear() that may be emptied when memory is short: a dict, a
        CachedDataset, a MemoryStore. Returned as it is."""
        if not callable(getattr(cache, "clear", None)):
            raise TypeError(f"{type(cache).__name__} has no clear(): it cannot be emptied")
        self._caches.append(cache)
        return cache

    # ---- what it does ----

    def checkpoint(self) -> None:
        """Look now; MemoryLimitError when the limit is passed and there is no callback.
        Call it where stopping is safe, such as between batches."""
        self._look()
        if self._exceeded is not None:
            text, self._exceeded = self._exceeded, None
            raise MemoryLimitError(text)

    def _over(self) -> Optional[int]:
        used = self.used_bytes()
        if used is None or self.limit_bytes is None:
            return None
        self.peak_bytes = max(self.peak_bytes, used)
        return used if used > self.limit_bytes else None

    def _look(self) -> None:
        with self._lock:
            if self._over() is None:
                self._told = False
                self._exceeded = None
                return
            self._relieve()
            used = self._over()
            if used is None:
                return
            if self.on_limit is None:
                self._exceeded = (
                    f"{used / MIB:.0f} MiB are used, {(self.limit_bytes or 0) / MIB:.0f} "
                    "are allowed (max_memory_usage): use smaller chunks or batches, or "
                    "raise the limit"
                )
            elif not self._told:
                self._told = True  # once, until it was below again
                self.on_limit(self)

    def _relieve(self) -> None:
        self.relieved += 1
        for cache in self._caches:
            cache.clear()
        gc.collect()
        _trim()

    # ---- the block ----

    def __enter__(self) -> "MemoryScope":
        if self.limit_bytes is not None and self.interval_s > 0:
            self._watcher = threading.Thread(target=self._watch, daemon=True)
            self._watcher.start()
        return self

    def _watch(self) -> None:
        while not self._stop.wait(self.interval_s):
            self._look()

    def __exit__(self, kind: Any, *rest: Any) -> None:
        self._stop.set()
        if self._watcher is not None:
            self._watcher.join()
        self._look_last(kind)

    def _look_last(self, kind: Any) -> None:
        if kind is None and self._exceeded is not None:
            self.checkpoint()


def memory(
    config: Optional[Any] = None,
    *,
    limit_bytes: Optional[int] = None,
    on_limit: Optional[Callable[[MemoryScope], Any]] = None,
    interval_s: float = 0.25,
) -> MemoryScope:
    """A block that keeps memory under `config.max_memory_usage` of the cgroup's limit, or
    of the machine's memory; or this process under `limit_bytes`.

        with sonde.optimize.memory(sonde.Config(max_memory_usage=0.5)) as scope:
            seen = scope.add_cache({})
            for batch in loader:
                scope.checkpoint()
                train(batch)

    A thread looks every `interval_s` seconds. At the limit caches are emptied and garbage
    is collected; when that does not help, `on_limit(scope)` is called (in that thread, once
    each time the limit is passed), or without one the next `checkpoint()`, or the end of
    the block, raises MemoryLimitError.
    """
    from .._config import Config

    if limit_bytes is not None and limit_bytes <= 0:
        raise ValueError("memory(limit_bytes=) must be positive")
    return MemoryScope(config or Config(), limit_bytes, on_limit, interval_s)
