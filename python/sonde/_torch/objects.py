"""What a data set keeps that forked workers will copy.

Reading a Python object writes its reference count, so the pages of many small objects do
not stay shared. Only lengths are asked for, and only of Python's own containers: neither
properties nor methods of the program run. Asked once per loader that has workers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

_CONTAINERS = (list, tuple, dict, set, frozenset, deque)
_FEWEST = 10_000
_DEEPEST = 4
_MOST_PARTS = 16


def _length(o: Any) -> int:
    """Of a container, else 0. A subclass may count otherwise: its base does not."""
    for kind in _CONTAINERS:
        if isinstance(o, kind):
            return int(kind.__len__(o))  # type: ignore[arg-type]
    kind = type(o)
    if (
        kind.__name__ == "ndarray"
        and kind.__module__ == "numpy"
        and o.dtype.kind == "O"
    ):
        return int(o.size)
    return 0


def _first(o: Any) -> Any:
    """One of its elements: of a dict the first value."""
    if type(o) is dict:
        return next(iter(o.values()), None)
    if type(o) in _CONTAINERS:
        return next(iter(o), None)
    return None


def _datasets(dataset: Any, depth: int = 0) -> Iterator[Any]:
    """It, and those it is made of: Subset, ConcatDataset, wrappers like them."""
    yield dataset
    fields = getattr(dataset, "__dict__", None)
    if type(fields) is not dict or depth == _DEEPEST:
        return
    parts: Any = fields.get("datasets")
    inner = parts[:_MOST_PARTS] if type(parts) in (list, tuple) else []
    for part in [fields.get("dataset"), *inner]:
        if part is not None and part is not dataset:
            yield from _datasets(part, depth + 1)


def largest(dataset: Any) -> str:
    """'Records.items: list of 400,000 dict', or '' where nothing is large."""
    most, text = _FEWEST - 1, ""
    for one in _datasets(dataset):
        fields = getattr(one, "__dict__", None)
        for name, value in list(fields.items()) if type(fields) is dict else []:
            length = _length(value)
            if not length:
                continue
            element = _first(value)
            objects = length * (1 + _length(element))
            if objects > most:
                most = objects
                of = "" if element is None else f" {type(element).__name__}"
                kind = type(value).__name__
                text = f"{type(one).__name__}.{name}: {kind} of {length:,}{of}"
    return text[:256]
