"""What a model is made of, told once: when its class was first called as a root."""

from __future__ import annotations

from typing import Any

from .. import _layer

_MOST = 32  # models of a process


_told = 0


def first_call(module: Any) -> None:
    global _told
    inner: Any = getattr(module, "_orig_mod", None)  # torch.compile's wrapper
    if inner is None:
        inner = getattr(module, "module", None)  # DataParallel and its like
    if not hasattr(inner, "named_parameters"):
        inner = module
    parameters = list(inner.parameters())
    if not parameters or _told == _MOST:
        return
    _told += 1
    layers: dict[str, int] = {}
    modules = 0
    for part in inner.modules():
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
