"""Which moments of a training program are the boundaries of its steps.

A step goes from one fetch of the training loader to the next on the main thread. Which
loader that is shows when something is trained (a backward pass, an optimizer's step)
between two of its fetches: an iterator is a candidate at first, its step is taken back
when nothing was trained with it. Without a loader steps lie between steps of the first
optimizer. Programs that call sonde.step() say it themselves.

Some read a loader ahead (accelerate, prefetchers): two fetches, then train the first
batch, and the last one when the loader has ended. A step then trains the batch that was
fetched before it began, and the last one stays open behind the end of the loader until
something else is fetched, or the program ends.

The loader's part calls fetch_begins, fetch_ends and exhausted.
"""

from __future__ import annotations

import os
import atexit
import sys
import threading
import time
import weakref
from typing import Any, Optional

from .. import _layer, _sonde
from . import phases

_GIVE_UP = 10  # optimizer steps after which a loader that was fetched from once is none


class _Now:
    """What is known at the moment; one per process."""

    def __init__(self) -> None:
        self.iterator: Any = None  # weak reference to the one whose steps these are
        self.confirmed = False  # something was trained between its fetches
        self.open = False  # a step has begun
        self.samples = 0  # … with these samples so far
        self.work = 0  # work() at its last fetch
        self.optimizer_steps = 0
        self.since_fetch = 0  # optimizer steps since then
        self.first_optimizer: Optional[int] = None  # id, while no loader is in use
        self.others: Any = weakref.WeakKeyDictionary()  # iterator -> work() at its fetch
        self.ahead = 0  # fetches before anything was trained, less one
        self.carried = 0  # samples of those
        self.tail: Optional[int] = None  # work() at the end of a loader read ahead
        self.epoch = 0
        self.epoch_began = 0.0
        self.epoch_steps = 0
        self.epoch_samples = 0


_now = _Now()
_main = threading.main_thread().ident
_get_ident = threading.get_ident


def _work() -> int:
    """Grows with everything that is trained."""
    calls = phases.backward.calls if phases.backward is not None else 0
    return calls + _now.optimizer_steps


def _is_ours() -> bool:
    return _get_ident() == _main and not _sonde.user_steps()


def _is(reference: Any, it: Any) -> bool:
    return reference is not None and reference() is it


# ---- the open step ----


def _begin() -> None:
    _sonde.step_auto()
    _now.open = True
    _now.samples = 0


def _take_back() -> None:
    if _now.open and not _sonde.user_steps():
        _sonde.step_cancel(_now.samples)
    _now.open = False


def _end() -> None:
    if _now.open and not _sonde.user_steps():
        _sonde.step_end()
        _count_step()
    _now.open = False


def _count_step() -> None:
    _now.epoch_steps += 1
    _now.epoch_samples += _now.samples


# ---- epochs ----


def _epoch_begins() -> None:
    _now.epoch_began = time.time()
    _now.epoch_steps = _now.epoch_samples = 0


def _epoch_ends() -> None:
    if not _now.confirmed or _now.epoch_steps == 0:
        return
    _now.epoch += 1
    _layer.note(
        "epoch",
        epoch=_now.epoch,
        start=_now.epoch_began,
        end=time.time(),
        steps=_now.epoch_steps,
        samples=_now.epoch_samples,
    )


# ---- from the loader ----


def _gone(reference: Any) -> None:
    """The iterator was dropped: its loop was left before it ended."""
    if _now.iterator is reference and not _sonde.user_steps():
        if _now.confirmed or _work() > _now.work:
            _now.confirmed = True
            _end()
        else:
            _take_back()
        _epoch_ends()
        _now.iterator = None


def _adopt(it: Any, confirmed: bool) -> None:
    _now.iterator = weakref.ref(it, _gone)
    _now.confirmed = confirmed
    _now.first_optimizer = None
    _now.ahead = _now.carried = 0
    _epoch_begins()


def _next_of_ours() -> None:
    trained = _work() > _now.work
    if not _now.confirmed and trained and _now.open:
        _now.confirmed = True
    if _now.confirmed:
        if _now.open:
            _count_step()
        _begin()
    else:  # no training yet: not a training loader, or one that is read ahead
        if _now.open:
            _now.ahead += 1
            _now.carried += _now.samples
        _take_back()
        _now.confirmed = trained  # without a step so far: from here on they count
        _begin()


def _end_tail() -> None:
    """The loader was read ahead and had ended: was its last batch trained?"""
    if _now.tail is None:
        return
    trained, _now.tail = _work() > _now.tail, None
    if trained:
        _end()
    else:
        _take_back()
    _epoch_ends()


def _first_of_another(it: Any) -> None:
    """Another iterator: while ours goes on, it must train without ours to take over."""
    if _now.iterator is not None and _now.confirmed:
        before = _now.others.get(it)
        _now.others[it] = _work(), _now.work
        if before is None or before[0] == _work() or before[1] != _now.work:
            return
        _end()
        _epoch_ends()
        _adopt(it, True)
    else:
        if _now.open and _work() > _now.work:
            _end()
        else:
            _take_back()
        _adopt(it, False)
    _begin()


def fetch_begins(it: Any) -> None:
    """The main thread asks the iterator `it` for the next batch."""
    if not _is_ours():
        return
    _end_tail()
    if _is(_now.iterator, it):
        _next_of_ours()
    else:
        _first_of_another(it)
    if _is(_now.iterator, it):
        _now.work = _work()
        _now.since_fetch = 0


def fetch_ends(it: Any, batch: Any) -> None:
    """… and has got it."""
    if _now.open and _is(_now.iterator, it):
        samples = batch_size(batch)
        if samples:
            _now.samples += samples
            _sonde.step_add(samples)


def exhausted(it: Any) -> None:
    """… and there was none left."""
    if not _is(_now.iterator, it):
        return
    _now.iterator = None
    if _now.ahead and _now.confirmed and _now.open and not _sonde.user_steps():
        _now.tail = _work()
        _now.samples += _now.carried
        _sonde.step_add(_now.carried)
    else:
        _take_back()
        _epoch_ends()


# ---- from optimizers ----


def _optimizer_in_call() -> int:
    """Which optimizer steps: torch's wrapper of step() holds it, a frame or two up."""
    frame: Any = sys._getframe(2)
    for _ in range(4):
        if frame is None:
            break
        args = frame.f_locals.get("args")
        found = args[0] if isinstance(args, tuple) and args else None
        if not hasattr(found, "param_groups"):
            found = frame.f_locals.get("self")
        if hasattr(found, "param_groups"):
            return id(found)
        frame = frame.f_back
    return 0


def optimizer_begins(_: Any) -> None:
    """An optimizer's step() has been called."""
    _now.optimizer_steps += 1
    _now.since_fetch += 1
    if not _is_ours() or _now.tail is not None:
        return
    if _now.iterator is not None and not _now.confirmed:
        if _now.since_fetch < _GIVE_UP:
            return
        _take_back()
        _now.iterator = None
    if _now.iterator is None:
        optimizer = _optimizer_in_call()
        if _now.first_optimizer is None:
            _now.first_optimizer = optimizer
        if _now.first_optimizer == optimizer:
            _begin()


# ---- samples ----


def batch_size(batch: Any, depth: int = 0) -> int:
    """Samples in a batch: the first dimension of the first tensor in it; 0: unknown."""
    shape = getattr(batch, "shape", None)
    if shape is not None:
        return int(shape[0]) if len(shape) else 0
    graphs = getattr(batch, "num_graphs", None)
    if isinstance(graphs, int):
        return graphs
    if depth > 3:
        return 0
    values = getattr(batch, "values", None)
    if callable(values):
        batch = list(values())
    if isinstance(batch, (list, tuple)):
        for part in batch:
            size = batch_size(part, depth + 1)
            if size:
                return size
        if batch and isinstance(batch[0], (str, bytes, int, float)):
            return len(batch)
    return 0


def install(torch: Any) -> None:
    """Nothing to put anywhere: others call."""
    atexit.register(_layer.guarded, "torch: steps", _end_tail)
    os.register_at_fork(after_in_child=_after_fork)


def _after_fork() -> None:
    global _now, _main
    _now = _Now()
    _main = _get_ident()
