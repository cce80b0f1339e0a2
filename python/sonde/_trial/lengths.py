"""lengths: batches of samples that are about as long as each other.

The loader that trains keeps its data set and its sampler. What the sampler gives for the
steps of a trial is drawn at once, sorted by length and cut into batches anew. Lengths are
learned by asking the data set for these samples once, before the first step; which of
their dimensions is the length shows in what differs among them.
"""

from __future__ import annotations

import random
import sys
import time
from typing import Any, Iterator, Optional

_MOST_PART = 0.4  # of a trial's time that asking may take
_DEPTH = 3
_GOLDEN = 0.6180339887498949
_SEED = 1

Shape = dict[Any, int]  # a dimension of a part of a sample -> its size


def shape_of(o: Any, path: tuple[Any, ...] = ()) -> Shape:
    """Every dimension of what is in a sample."""
    shape = getattr(o, "shape", None)
    if isinstance(shape, tuple):  # an array; torch.Size is one
        return {(*path, n): int(size) for n, size in enumerate(shape)}
    if isinstance(o, (str, bytes)):
        return {(*path, "long"): len(o)}
    if isinstance(o, list) and all(isinstance(v, (int, float)) for v in o):
        return {(*path, "long"): len(o)}
    if len(path) >= _DEPTH:
        return {}
    found: Shape = {}
    for key, value in _parts(o):
        found.update(shape_of(value, (*path, key)))
    if isinstance(o, list):
        found[(*path, "long")] = len(o)
    return found


def _parts(o: Any) -> list[tuple[Any, Any]]:
    if isinstance(o, dict):
        return list(o.items())
    if isinstance(o, (list, tuple)):
        return list(enumerate(o[:16]))
    names = getattr(o, "__dict__", None)
    return list(names.items()) if isinstance(names, dict) else []


def lengths_of(shapes: list[Shape]) -> Optional[list[int]]:
    """Of each its length: the longest dimension that is not the same in all of them;
    None: they do not differ."""
    sums: dict[Any, int] = {}
    first: Shape = shapes[0] if shapes else {}
    differ = set()
    for shape in shapes:
        for key, size in shape.items():
            sums[key] = sums.get(key, 0) + size
            if size != first.get(key):
                differ.add(key)
    if not differ:
        return None
    longest = max(differ, key=lambda key: (sums[key], str(key)))
    return [shape.get(longest, 0) for shape in shapes]


def spread(count: int, rng: random.Random) -> list[int]:
    """An order of so many in which any few in a row are short and long ones alike: the
    steps that are measured are then as long as all of them."""
    start = rng.random()
    marks = [(start + k * _GOLDEN) % 1 for k in range(count)]
    rank = {k: n for n, k in enumerate(sorted(range(count), key=marks.__getitem__))}
    return [rank[k] for k in range(count)]


def alike(
    batches: list[list[Any]], lengths: dict[Any, int], rng: random.Random
) -> list[list[Any]]:
    """The same samples in as many batches of the same sizes."""
    indices = sorted((i for b in batches for i in b), key=lambda i: lengths[i])
    sizes = [len(b) for b in batches]
    rng.shuffle(sizes)  # a last one that is not full has no length of its own
    made, at = [], 0
    for size in sizes:
        made.append(indices[at : at + size])
        at += size
    return [made[n] for n in spread(len(made), rng)]


class _TooLong(Exception):
    pass


class Sorted:
    """In the place of a loader's batch sampler."""

    def __init__(self, course: Any, part: Any, loader: Any) -> None:
        self.course, self.part = course, part
        self.real, self.dataset = loader.batch_sampler, loader.dataset
        ahead = loader.num_workers * (getattr(loader, "prefetch_factor", 0) or 0)
        self.pool = course.wanted + course.warmup + ahead + 16
        self.shapes: dict[Any, Shape] = {}
        self.left_s = _MOST_PART * float(course.spec.get("seconds", 120))
        self.rng = random.Random(_SEED)

    def __len__(self) -> int:
        return len(self.real)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "real" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.real, name)

    def __iter__(self) -> Iterator[list[Any]]:
        drawn: list[list[Any]] = []
        for batch in self.real:
            drawn.append(list(batch))
            if len(drawn) >= self.pool:
                yield from self.ordered(drawn)
                drawn = []
        yield from self.ordered(drawn)

    def ordered(self, drawn: list[list[Any]]) -> list[list[Any]]:
        indices = [i for b in drawn for i in b]
        if not indices or self.part.why:
            return drawn
        try:
            self.learn(indices)
        except _TooLong:
            self.part.why = "asking the data set for its lengths takes too long"
            return drawn
        lengths = lengths_of([self.shapes[i] for i in indices])
        if lengths is None:
            self.part.why = "its samples do not differ in length"
            return drawn
        self.part.settled = True
        return alike(drawn, dict(zip(indices, lengths)), self.rng)

    def learn(self, indices: list[Any]) -> None:
        """What is random in a sample stays as it would have been."""
        kept = _random_state()
        begin = time.monotonic()
        try:
            for i in indices:
                if i not in self.shapes:
                    self.shapes[i] = shape_of(self.dataset[i])
                if time.monotonic() - begin > self.left_s:
                    raise _TooLong
        finally:
            self.left_s -= time.monotonic() - begin
            _set_random_state(kept)


def _random_state() -> list[Any]:
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    rng = getattr(numpy, "random", None)
    return [
        random.getstate(),
        torch.get_rng_state() if torch is not None else None,
        rng.get_state() if rng is not None else None,
    ]


def _set_random_state(kept: list[Any]) -> None:
    random.setstate(kept[0])
    if kept[1] is not None:
        sys.modules["torch"].set_rng_state(kept[1])
    if kept[2] is not None:
        sys.modules["numpy"].random.set_state(kept[2])


def why_not(loader: Any, own_sampler: bool) -> str:
    """Why the loader's batches cannot be made anew; "" they can."""
    if getattr(loader, "_dataset_kind", 0) != 0 or not hasattr(
        loader.dataset, "__getitem__"
    ):
        return "its data set is read in order, and cannot be asked for a sample"
    if own_sampler:
        return "its batches are made by a sampler of the program's own"
    if loader.batch_sampler is None:
        return "its batches are not put together by the loader"
    return ""


def install(course: Any, part: Any, loader: Any, own_sampler: bool) -> None:
    """Right behind the loader's own __init__."""
    part.why = why_not(loader, own_sampler)
    if not part.why:
        # DataLoader lets nobody set it; iterators read it when they begin.
        object.__setattr__(loader, "batch_sampler", Sorted(course, part, loader))
