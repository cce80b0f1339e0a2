"""Samples kept: in memory or on disk, and the data set that asks there first.

Nothing is evicted: an epoch asks for every sample once, so the one just evicted would be
the one asked for next time. A cache that is full keeps what it has.
"""

from __future__ import annotations

import contextlib
import hashlib
import multiprocessing
import os
import shutil
import tempfile
import weakref
from multiprocessing.context import get_spawning_popen
from pathlib import Path
from typing import Any, Callable, Optional

from ._files import StoreError, encode, private_folder, read_value, write_file
from ._values import bytes_of, fresh

MISSING = object()


class MemoryStore:
    """Samples in this process, up to a number of samples and of bytes."""

    kind = "memory"

    def __init__(self, most_samples: int, most_bytes: Optional[int]) -> None:
        self.most_samples, self.most_bytes = most_samples, most_bytes
        self.bytes = 0
        self._samples: dict[Any, Any] = {}

    def __len__(self) -> int:
        return len(self._samples)

    def get(self, key: Any) -> Any:
        found = self._samples.get(key, MISSING)
        return found if found is MISSING else fresh(found)

    def put(self, key: Any, sample: Any) -> bool:
        if len(self._samples) >= self.most_samples or key in self._samples:
            return False
        size = bytes_of(sample)
        if self.most_bytes is not None and self.bytes + size > self.most_bytes:
            return False
        self._samples[key] = fresh(sample)  # the caller may change his
        self.bytes += size
        return True

    def clear(self) -> None:
        self._samples.clear()
        self.bytes = 0

    def close(self) -> None:
        self.clear()


class DiskStore:
    """Samples in files, shared by all workers of a loader; see _files.py for the format.

    Without a `key` the folder is this object's own and goes with it: nobody can tell
    whether the data of another run were the same. With a key the caller says so, and the
    samples stay."""

    kind = "disk"

    def __init__(
        self,
        folder: str,
        most_samples: int,
        compression: str,
        key: Optional[str] = None,
    ) -> None:
        root = private_folder(folder)
        if key is None:
            self.folder = Path(tempfile.mkdtemp(dir=root, prefix="samples-"))
        else:
            name = hashlib.blake2b(key.encode(), digest_size=16).hexdigest()
            self.folder = private_folder(root / f"kept-{name}")
        self.most_samples, self.compression = most_samples, compression
        self.damaged = 0
        self._owner = os.getpid() if key is None else None
        self._known = sum(1 for _ in self.folder.glob("*.sample")) if key else 0
        self._finish = weakref.finalize(self, _remove, self.folder, self._owner)

    def __len__(self) -> int:
        return sum(1 for _ in self.folder.glob("*.sample"))

    @property
    def bytes(self) -> int:
        return sum(p.stat().st_size for p in self.folder.glob("*.sample"))

    def _path(self, key: Any) -> Path:
        text = repr(key) if type(key) is int else f"{type(key).__name__} {key!r}"
        name = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
        return self.folder / f"{name}.sample"

    def get(self, key: Any) -> Any:
        path = self._path(key)
        try:
            return read_value(path)
        except FileNotFoundError:
            return MISSING
        except (StoreError, OSError):
            self.damaged += 1  # made anew
            with contextlib.suppress(OSError):
                path.unlink()
            return MISSING

    def put(self, key: Any, sample: Any) -> bool:
        if self._known >= self.most_samples:
            return False
        if not self._reserve():
            return False
        try:
            write_file(self._path(key), encode(sample, self.compression))
        except OSError:  # a full disk: the sample is there all the same
            return False
        return True

    def _reserve(self) -> bool:
        """Counts one more, by all processes together; each counts its own between looks."""
        self._known += 1
        if self._known > self.most_samples or self._known % 64 == 0:
            self._known = len(self) + 1
        return self._known <= self.most_samples

    def clear(self) -> None:
        for path in self.folder.glob("*.sample"):
            with contextlib.suppress(OSError):
                path.unlink()
        self._known = 0

    def close(self) -> None:
        self._finish()

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        del state["_finish"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _owner=None)  # a copy removes nothing
        self._finish = weakref.finalize(self, _remove, self.folder, None)


def _remove(folder: Path, owner: Optional[int]) -> None:
    if owner == os.getpid():  # not in workers, and not what has a key
        shutil.rmtree(folder, ignore_errors=True)


class Counts:
    """Hits and misses, counted by all workers together."""

    def __init__(self) -> None:
        self._hits = multiprocessing.Value("q", 0)
        self._misses = multiprocessing.Value("q", 0)

    def hit(self) -> None:
        with self._hits.get_lock():
            self._hits.value += 1

    def miss(self) -> None:
        with self._misses.get_lock():
            self._misses.value += 1

    @property
    def hits(self) -> int:
        return int(self._hits.value)

    @property
    def misses(self) -> int:
        return int(self._misses.value)

    def reset(self) -> None:
        self._hits.value = self._misses.value = 0

    def __getstate__(self) -> dict[str, Any]:
        # Shared memory goes to processes as they are started, and nowhere else.
        return self.__dict__ if get_spawning_popen() is not None else {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__()  # type: ignore[misc]
        self.__dict__.update(state)


class CachedDataset:
    """A map-style data set whose samples are kept once they were made.

    Everything else it is asked for is the data set's own. `hit_rate`, `hits` and `misses`
    count over all workers; `len(cached.store)` samples are kept.

    With `least_hit_rate` the cache is given up, and its memory freed, once an epoch's
    worth of requests was answered less often than that.
    """

    def __init__(self, dataset: Any, store: Any, least_hit_rate: float = 0.0) -> None:
        self._dataset, self.store = dataset, store
        self._least, self._counts = least_hit_rate, Counts()
        self._seen = 0  # requests since the cache began

    # ---- samples ----

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, index: Any) -> Any:
        return self._sample(index, self._dataset.__getitem__)

    def __getitems__(self, indices: Any) -> list[Any]:
        """Several at once, as torch's loader asks when it can."""
        together = getattr(self._dataset, "__getitems__", None)
        if not together:
            return [self[i] for i in indices]
        made: dict[int, Any] = {}
        missing = [(n, i) for n, i in enumerate(indices) if not self._holds(n, i, made)]
        if missing:
            for (n, i), sample in zip(missing, together([i for _, i in missing])):
                self._keep(_key(i), sample)
                made[n] = sample
        return [made[n] for n in range(len(made))]

    def _keep(self, key: Any, sample: Any) -> None:
        if key is not None:
            self.store.put(key, sample)

    def _holds(self, n: int, index: Any, made: dict[int, Any]) -> bool:
        found = self._look(_key(index))
        if found is not MISSING:
            made[n] = found
        return found is not MISSING

    def _sample(self, index: Any, make: Callable[[Any], Any]) -> Any:
        key = _key(index)
        found = self._look(key)
        if found is MISSING:
            found = make(index)
            self._keep(key, found)
        return found

    def _look(self, key: Any) -> Any:
        found = MISSING if key is None else self.store.get(key)
        self._counts.miss() if found is MISSING else self._counts.hit()
        if self._least > 0:
            self._judge()
        return found

    def _judge(self) -> None:
        """Past the first epoch, which can only miss."""
        self._seen += 1
        if self._seen == len(self):
            self._counts.reset()
        elif self._seen >= 2 * len(self):
            if self.hit_rate is not None and self.hit_rate < self._least:
                self.store.clear()
                self.store.most_samples = 0
            self._least = 0.0

    # ---- what it knows ----

    @property
    def hits(self) -> int:
        return self._counts.hits

    @property
    def misses(self) -> int:
        return self._counts.misses

    @property
    def hit_rate(self) -> Optional[float]:
        """Of the requests so far; None before the first."""
        asked = self.hits + self.misses
        return self.hits / asked if asked else None

    def clear(self) -> None:
        """Forget the samples, not the counts."""
        self.store.clear()

    def close(self) -> None:
        """Free memory or remove the files; the data set goes on without."""
        self.store.most_samples = 0
        self.store.close()

    def __getattr__(self, name: str) -> Any:
        # Special methods of the data set would go past the cache, and a half-made copy
        # has no data set to ask.
        if name.startswith("__") or "_dataset" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self._dataset, name)

    def __repr__(self) -> str:
        return f"CachedDataset({self._dataset!r}, {self.store.kind})"


def _key(index: Any) -> Any:
    """What an index is called in the cache; None: such a sample is not kept."""
    if type(index) in (int, str, bytes):
        return index
    if type(index) is tuple:
        return index if all(type(x) in (int, str, bytes) for x in index) else None
    try:
        return int(index.__index__())  # numpy's integers, torch's scalars
    except (AttributeError, TypeError, ValueError):
        return None
