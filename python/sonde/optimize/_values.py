"""Samples as values: are two the same to the bit, a copy nobody shares, how many bytes.

numpy and torch are asked only when the program has loaded them: without, no value can be
an array of theirs.
"""

from __future__ import annotations

import copy
import pickle
import random
import struct
import sys
from typing import Any

_ATOMS = (type(None), bool, int, str, bytes, type)


def _numpy() -> Any:
    return sys.modules.get("numpy")


def _torch() -> Any:
    torch = sys.modules.get("torch")
    return torch if hasattr(torch, "Tensor") else None


def is_array(value: Any) -> bool:
    numpy = _numpy()
    return numpy is not None and isinstance(value, numpy.ndarray)


def is_tensor(value: Any) -> bool:
    torch = _torch()
    return torch is not None and isinstance(value, torch.Tensor)


# ---- the same --------------------------------------------------------------------------


def same(a: Any, b: Any) -> bool:
    """Equal in type, structure and every bit: NaN equals NaN, 0.0 is not -0.0."""
    if type(a) is not type(b):
        return False
    if a is b:
        return True
    if isinstance(a, float):
        return struct.pack("d", a) == struct.pack("d", b)
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if is_tensor(a):
        return _same_tensors(a, b)
    if is_array(a):
        return _same_arrays(a, b)
    return _same_objects(a, b)


def _same_arrays(a: Any, b: Any) -> bool:
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.hasobject:
        return same(a.tolist(), b.tolist())
    return bool(a.tobytes() == b.tobytes())


def _same_tensors(a: Any, b: Any) -> bool:
    if a.dtype != b.dtype or a.shape != b.shape or a.device != b.device:
        return False
    if a.layout != b.layout or a.is_quantized or str(a.layout) != "torch.strided":
        return _same_pickles(a, b)
    torch = _torch()
    rows = [x.detach().contiguous().reshape(-1).view(torch.uint8) for x in (a, b)]
    return bool(torch.equal(*rows))


def _same_pickles(a: Any, b: Any) -> bool:
    try:
        return pickle.dumps(a) == pickle.dumps(b)
    except Exception:  # what cannot be pickled cannot be told to be the same
        return False


def _same_objects(a: Any, b: Any) -> bool:
    if type(a).__eq__ is object.__eq__:
        return _same_pickles(a, b)
    try:
        return bool(a == b)
    except Exception:  # comparisons of other people's types may do anything
        return _same_pickles(a, b)


# ---- a copy of one's own ---------------------------------------------------------------


def fresh(value: Any) -> Any:
    """The same value, sharing nothing that can be changed."""
    kind = type(value)
    if kind in _ATOMS or kind is float or kind is complex:
        return value
    if kind is list:
        return [fresh(x) for x in value]
    if kind is tuple:
        return tuple([fresh(x) for x in value])
    if kind is dict:
        return {key: fresh(x) for key, x in value.items()}
    torch = _torch()
    if torch is not None and kind is torch.Tensor and not value.requires_grad:
        return value.clone()
    if _numpy() is not None and kind is _numpy().ndarray and not value.dtype.hasobject:
        return value.copy(order="K")
    return copy.deepcopy(value)


# ---- bytes -----------------------------------------------------------------------------


def bytes_of(value: Any) -> int:
    """Bytes a value takes: arrays by their elements, the rest as Python counts it."""
    if is_tensor(value):
        return int(value.element_size() * value.nelement())
    if is_array(value):
        return int(value.nbytes)
    own = sys.getsizeof(value, 64)
    if isinstance(value, dict):
        return own + sum(bytes_of(k) + bytes_of(v) for k, v in value.items())
    if isinstance(value, (list, tuple, set, frozenset)):
        return own + sum(map(bytes_of, value))
    inner = getattr(value, "__dict__", None)
    return own + (sum(map(bytes_of, inner.values())) if isinstance(inner, dict) else 0)


# ---- random numbers --------------------------------------------------------------------


class RandomState:
    """The state of the global generators: to notice that one was used, and to put it
    back, so that measuring leaves the program's random numbers as they were."""

    def __init__(self, *generators: Any) -> None:
        self._python = random.getstate()
        numpy, torch = _numpy(), _torch()
        legacy = getattr(numpy, "random", None)
        self._numpy = legacy.get_state() if legacy is not None else None
        self._torch = torch.get_rng_state() if torch is not None else None
        self._own = [(g, g.get_state()) for g in generators if g is not None]

    def was_used(self) -> bool:
        """Whether somebody drew a number since."""
        now = RandomState(*(g for g, _ in self._own))
        states = [
            (self._python, now._python),
            (self._numpy, now._numpy),
            (self._torch, now._torch),
            *((a, b) for (_, a), (_, b) in zip(self._own, now._own)),
        ]
        return any(a is not None and b is not None and not same(a, b) for a, b in states)

    def restore(self) -> None:
        random.setstate(self._python)
        if self._numpy is not None:
            _numpy().random.set_state(self._numpy)
        if self._torch is not None:
            _torch().set_rng_state(self._torch)
        for generator, state in self._own:
            generator.set_state(state)
