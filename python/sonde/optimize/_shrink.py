"""sonde.optimize.shrink: arrays in smaller types where no value changes."""

from __future__ import annotations

from typing import Any, Optional

from ._values import is_array, is_tensor

INTEGERS = ("int8", "int16", "int32")


def shrink(
    data: Any, config: Optional[Any] = None, *, allow: tuple[str, ...] = ()
) -> Any:
    """The data with arrays and tensors in smaller types and contiguous, where every value
    stays what it is.

        smaller = sonde.optimize.shrink({"x": rows, "y": labels})
        sonde.optimize.bytes_of(smaller) / sonde.optimize.bytes_of(data)

    float64 becomes float32 when each value survives it exactly, or with
    `allow=("precision",)` in any case (but what float32 cannot hold stays). int64 becomes
    the smallest of int32, int16, int8 that holds all values. Lists, tuples and dicts are
    gone through; everything else is returned as it is, as is all with
    `memory_efficient=False`. Sums over smaller integers may overflow later, and some calls
    want int64 (class indices of torch's losses): shrink what is stored, not what is computed.
    """
    from .._config import Config

    if allow not in ((), ("precision",)):
        raise ValueError(f"shrink(allow=) knows 'precision', not {allow!r}")
    if not (config or Config()).memory_efficient:
        return data
    return _shrunk(data, "precision" in allow)


def _shrunk(data: Any, rounded: bool) -> Any:
    if type(data) is dict:
        return {key: _shrunk(value, rounded) for key, value in data.items()}
    if type(data) in (list, tuple):
        return type(data)(_shrunk(value, rounded) for value in data)
    if is_tensor(data):
        return _tensor(data, rounded)
    return _array(data, rounded) if is_array(data) else data


def _array(array: Any, rounded: bool) -> Any:
    import numpy

    if array.dtype == numpy.float64:
        with numpy.errstate(over="ignore"):
            small = array.astype(numpy.float32)
        if _holds(array, small, rounded, numpy):
            array = small
    elif array.dtype == numpy.int64 and array.size:
        low, high = int(array.min()), int(array.max())
        for name in INTEGERS:
            limits = numpy.iinfo(name)
            if limits.min <= low and high <= limits.max:
                array = array.astype(name)
                break
    return array if array.ndim == 0 else numpy.ascontiguousarray(array)


def _tensor(tensor: Any, rounded: bool) -> Any:
    import torch

    if tensor.requires_grad or str(tensor.layout) != "torch.strided":
        return tensor  # its gradient would have another type
    if tensor.dtype == torch.float64:
        small = tensor.float()
        if _holds(tensor, small, rounded, torch):
            tensor = small
    elif tensor.dtype == torch.int64 and tensor.numel():
        low, high = int(tensor.min()), int(tensor.max())
        for name in INTEGERS:
            limits = torch.iinfo(getattr(torch, name))
            if limits.min <= low and high <= limits.max:
                tensor = tensor.to(getattr(torch, name))
                break
    return tensor.contiguous()


def _holds(large: Any, small: Any, rounded: bool, library: Any) -> bool:
    """Whether nothing is lost, or with `rounded` only digits."""
    nan = library.isnan(large)
    if rounded:
        return bool((library.isfinite(small) | ~library.isfinite(large)).all())
    return bool(((large == small) | nan).all())
