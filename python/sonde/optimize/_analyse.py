"""What kind of data set this is: length, bytes and time of a sample, random or not."""

from __future__ import annotations

import contextlib
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any, Optional

from .._bench import queued_s
from ._values import RandomState, bytes_of, same

LOOKS = 8  # samples that are read, each twice
SECONDS = 1.0  # at most, the second readings aside


@dataclass
class Analysis:
    """Of a few samples, spread over the data set. Times in seconds."""

    kind: str  # map, iterable
    length: Optional[int]
    sample_bytes: Optional[int] = None
    sample_s: Optional[float] = None
    cpu_share: Optional[float] = None  # of that time, queueing for a core included
    random: Optional[bool] = None  # the same sample again is another; None: not looked
    looked: int = 0

    @property
    def total_bytes(self) -> Optional[int]:
        if self.sample_bytes is None or self.length is None:
            return None
        return self.sample_bytes * self.length

    @property
    def complexity(self) -> str:
        """Cheap below 1 ms a sample, the reference's threshold; else what it waits for."""
        if self.sample_s is None:
            return "unknown"
        if self.sample_s < 1e-3:
            return "cheap"
        return "computes" if (self.cpu_share or 0) >= 0.5 else "waits"

    def to_dict(self) -> dict[str, Any]:
        more = {"total_bytes": self.total_bytes, "complexity": self.complexity}
        return {**asdict(self), **more}


def busy_s() -> float:
    """Seconds this thread computed, or would have if it had had a core."""
    return time.thread_time() + queued_s()


def is_map_style(dataset: Any) -> bool:
    torch_data = sys.modules.get("torch.utils.data")
    iterable = getattr(torch_data, "IterableDataset", None)
    if iterable is not None and isinstance(dataset, iterable):
        return False
    return hasattr(dataset, "__getitem__")


def length_of(dataset: Any) -> Optional[int]:
    with contextlib.suppress(TypeError, NotImplementedError, AttributeError):
        return len(dataset)
    return None


def analyse(dataset: Any, indices: Optional[list[Any]] = None) -> Analysis:
    """Reads a few samples twice; the global random numbers are put back afterwards."""
    if not is_map_style(dataset):
        return Analysis("iterable", length_of(dataset))
    found = Analysis("map", length_of(dataset))
    if indices is None:
        indices = _spread(found.length or 0)
    state = RandomState()
    try:
        _look(dataset, indices[:LOOKS], found)
    finally:
        state.restore()
    return found


def _spread(length: int) -> list[int]:
    count = min(LOOKS, length)
    return [i * length // count for i in range(count)]


def _look(dataset: Any, indices: list[Any], found: Analysis) -> None:
    walls, cpus, sizes = [], [], []
    began = time.perf_counter()
    for index in indices:
        before = RandomState()
        wall, busy = time.perf_counter(), busy_s()
        sample = dataset[index]
        cpus.append(busy_s() - busy)
        walls.append(time.perf_counter() - wall)
        sizes.append(bytes_of(sample))
        found.random = (
            bool(found.random) or before.was_used() or not same(sample, dataset[index])
        )
        if time.perf_counter() - began > SECONDS:
            break
    if walls:
        found.looked = len(walls)
        found.sample_s = statistics.median(walls)
        found.cpu_share = min(1.0, sum(cpus) / max(sum(walls), 1e-9))
        found.sample_bytes = round(statistics.fmean(sizes))
