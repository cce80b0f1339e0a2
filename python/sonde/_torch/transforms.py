"""Transforms of a data set, found by their shape.

torchvision's and albumentations' Compose hold a list `transforms` and call its elements
in order; people write their own the same way. Each element gets a stand-in that is in the
list only while a batch is made (python/src/making.c). A data set's `transform` that is no
Compose is one transform. Nothing is called here, and no property is read: only what
instances have in their dictionaries.
"""

from __future__ import annotations

import re
from typing import Any, Iterator, Optional, Tuple

from .. import _sonde

_NAMES = re.compile(r"transform|augment|preprocess", re.IGNORECASE)
_RANDOM = re.compile(
    r"^random|jitter|augment|mixup|cutmix|cutout|erasing", re.IGNORECASE
)
_CONTAINERS = ("Compose", "Sequential")
_DEEPEST = 4
_MOST = 64

Slot = Tuple[Any, Any, Any, Any]  # container, key, original, stand-in


def _fields(o: Any) -> dict[str, Any]:
    fields = getattr(o, "__dict__", None)
    return fields if type(fields) is dict else {}


def name_of(o: Any) -> str:
    """RandomCrop, <lambda> …"""
    return getattr(o, "__name__", None) or type(o).__name__


def _steps(o: Any) -> Optional[Any]:
    """The list or dict whose elements `o` calls in order; None: it is no container."""
    fields = _fields(o)
    if not any(c.__name__.endswith(_CONTAINERS) for c in type(o).__mro__):
        return None
    if isinstance(fields.get("transforms"), (list, tuple)):
        return fields["transforms"]
    if isinstance(fields.get("_modules"), dict) and type(o).__name__ == "Sequential":
        return fields["_modules"]
    return None


class _Finder:
    def __init__(self, maker: Any) -> None:
        self.maker = maker
        self.slots: list[Slot] = []
        self.place = 0
        self.seen: set[int] = set()

    def standin(self, transform: Any) -> Any:
        name = name_of(transform)
        phase = "augmentation" if _RANDOM.search(name) else "preprocessing"
        made = _sonde.loader_step(transform, self.maker, name, self.place, phase)
        self.place += 1
        return made

    def timed(self, o: Any) -> bool:
        return callable(o) and not _sonde.loader_is_standin(o) and self.place < _MOST

    def elements(self, owner: Any, steps: Any, depth: int) -> None:
        if isinstance(steps, tuple):
            new = tuple(self.standin(t) if self.timed(t) else t for t in steps)
            self.slots.append((owner.__dict__, "transforms", steps, new))
            return
        pairs = list(steps.items() if isinstance(steps, dict) else enumerate(steps))
        for key, transform in pairs:
            inner = _steps(transform)
            if inner is not None and depth < _DEEPEST:
                self.container(transform, inner, depth + 1)
            elif self.timed(transform):
                self.slots.append((steps, key, transform, self.standin(transform)))

    def container(self, owner: Any, steps: Any, depth: int) -> None:
        if id(owner) not in self.seen:
            self.seen.add(id(owner))
            self.elements(owner, steps, depth)

    def attribute(self, owner: dict[str, Any], key: str, value: Any, depth: int) -> None:
        steps = _steps(value)
        if steps is not None:
            self.container(value, steps, depth)
        elif (
            _NAMES.search(key)
            and self.timed(value)
            and not isinstance(value, type)
            and not _holds_transforms(value)
        ):
            self.slots.append((owner, key, value, self.standin(value)))

    def dataset(self, dataset: Any, depth: int = 0) -> None:
        if id(dataset) in self.seen or depth > _DEEPEST:
            return
        self.seen.add(id(dataset))
        fields = _fields(dataset)
        for key, value in list(fields.items()):
            self.attribute(fields, key, value, depth)
        for inner in _inner(fields):
            self.dataset(inner, depth + 1)


def _holds_transforms(value: Any) -> bool:
    """torchvision's StandardTransform: what it calls is an attribute of its own."""
    return any(_NAMES.search(key) for key in _fields(value))


def _inner(fields: dict[str, Any]) -> Iterator[Any]:
    """Data sets that a data set is made of: Subset, ConcatDataset, people's wrappers."""
    for key in ("dataset", "base_dataset", "ds"):
        if key in fields:
            yield fields[key]
    many = fields.get("datasets")
    if isinstance(many, (list, tuple)) and len(many) <= 64:
        yield from many


def _subsets(dataset: Any, maker: Any) -> Iterator[Slot]:
    """torch 2's Subset asks for whole batches: samples are told apart one level below."""
    depth = 0
    while hasattr(type(dataset), "__getitems__") and depth < _DEEPEST:
        fields = _fields(dataset)
        if "indices" not in fields or "dataset" not in fields:
            return
        inner = fields["dataset"]
        if not hasattr(type(inner), "__getitems__"):
            if not _sonde.loader_is_standin(inner):
                yield fields, "dataset", inner, _sonde.loader_standin(inner, maker)
            return
        dataset = inner
        depth += 1


def slots(dataset: Any, maker: Any) -> list[Slot]:
    """Places in the data set to put stand-ins into."""
    finder = _Finder(maker)
    try:
        finder.dataset(dataset)
        finder.slots.extend(_subsets(dataset, maker))
    except Exception:  # somebody's __getattr__; what was found is good
        pass
    return finder.slots
