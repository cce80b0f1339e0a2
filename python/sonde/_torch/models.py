"""What a model is made of, told once: when its class was first called as a root."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import _layer

_MOST = 32  # models of a process


_told = 0


def _inner(module: Any) -> Any:
    """What torch.compile, DataParallel and their like wrap."""
    inside = module._modules
    inner = inside.get("_orig_mod")
    if inner is None:
        inner = inside.get("module")
    return module if inner is None else inner


def _parts(module: Any) -> Iterator[Any]:
    """As Module.modules(), which the program may have overridden."""
    seen: set[int] = set()
    left = [module]
    while left:
        part = left.pop()
        if part is not None and id(part) not in seen:
            seen.add(id(part))
            left.extend(part._modules.values())
            yield part


def first_call(module: Any) -> None:
    global _told
    inner = _inner(module)
    parts = list(_parts(inner))
    found = {id(p): p for part in parts for p in part._parameters.values()}
    parameters = [p for p in found.values() if p is not None]
    if not parameters or _told == _MOST:
        return
    _told += 1
    layers: dict[str, int] = {}
    modules = 0
    for part in parts:
        modules += 1
        if not part._modules:  # the leaves: what computes
            name = type(part).__name__
            layers[name] = layers.get(name, 0) + 1
    _layer.note(
        "model",
        name=type(inner).__qualname__.replace("<locals>.", ""),
        parameters=sum(_size(p) for p in parameters),
        trainable=sum(_size(p) for p in parameters if p.requires_grad),
        bytes=sum(_size(p) * p.element_size() for p in parameters),
        modules=modules,
        layers=dict(sorted(layers.items(), key=lambda i: -i[1])[:64]),
    )


def _size(parameter: Any) -> int:
    shape = parameter.shape
    size = 1
    for n in shape:
        size *= int(n)
    return size
