"""torch's DataLoader: who waits for whom, and what made them slow.

Everything that runs per batch or per sample is C (python/src/loaders.c and its
neighbours): hooks on the iterators' methods that add no frame to a traceback, draw no
random number and keep nothing of the program's alive. Python code here runs once per
loader and epoch.

An iterator that is watched has an attribute `_sonde`; so has the fetcher that makes its
batches (workers.py).
"""

from __future__ import annotations

import sys
import threading
import weakref
from typing import Any, Optional

from .. import _sonde
from . import objects, workers

PIN, PERSISTENT, SHUFFLE, ITERABLE, UNORDERED, UNTIMED = 1, 2, 4, 8, 16, 32

_MOST_ROWS = 1024
_local = threading.local()  # .started: ticks at which iter(loader) was called


def install(torch: Any) -> None:
    from torch.utils import data
    from torch.utils.data import _utils, dataloader

    _sonde.loader_tensor(torch.Tensor)
    _sonde.rows_tensor(torch.Tensor)
    hook = _sonde.Hook
    loader = dataloader.DataLoader
    single = dataloader._SingleProcessDataLoaderIter
    multi = dataloader._MultiProcessingDataLoaderIter
    base = dataloader._BaseDataLoaderIter

    loader.__init__ = hook(loader.__init__, after=_made)
    loader.__iter__ = hook(loader.__iter__, before=_iter_begins, after=_iter_ends)
    single.__init__ = hook(single.__init__, after=_single_made)
    multi._reset = hook(multi._reset, before=_multi_resets)
    multi._try_get_data = hook(multi._try_get_data, "taking")
    multi._try_put_index = hook(multi._try_put_index, "sending")
    base._next_index = hook(base._next_index, "sampling")
    base.__next__ = hook(base.__next__, "next")
    _utils.pin_memory.pin_memory = hook(_utils.pin_memory.pin_memory, "pinning")
    workers.install(data, _utils)


# ---- where a loader was made ----


def _made(_: Any, loader: Any, *__: Any) -> None:
    """DataLoader(…) has been called: by whom?"""
    if "_sonde_made" in loader.__dict__:
        return
    first: Optional[tuple[str, int]] = None
    frame: Any = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if "/torch/utils/data/" not in file:
            first = first or (file, frame.f_lineno)
            if "/site-packages/" not in file and "/dist-packages/" not in file:
                loader.__dict__["_sonde_made"] = (file, frame.f_lineno)
                return
        frame = frame.f_back
    loader.__dict__["_sonde_made"] = first or ("", 0)


# ---- one loader ----


def _name(o: Any) -> str:
    if o is None:
        return ""
    return getattr(o, "__name__", None) or type(o).__name__


_COUNTING = ("SequentialSampler", "RandomSampler", "DistributedSampler")


def _length(dataset: Any, sampler: Any) -> int:
    """len() is the program's code: only where torch calls it as well."""
    kind = type(dataset)
    if (
        kind not in (list, tuple, range)
        and kind.__module__ != "torch.utils.data.dataset"
        and not (
            type(sampler).__name__ in _COUNTING
            and type(sampler).__module__.startswith("torch.utils.data.")
        )
    ):
        return -1
    try:
        return len(dataset)
    except Exception:
        return -1


def _flags(loader: Any) -> int:
    sampler = type(getattr(loader, "sampler", None)).__name__
    flags = PIN if loader.pin_memory else 0
    flags |= PERSISTENT if loader.persistent_workers else 0
    flags |= SHUFFLE if sampler == "RandomSampler" else 0
    flags |= 0 if getattr(loader, "in_order", True) else UNORDERED
    if int(loader._dataset_kind) != 0:
        flags |= ITERABLE
    if workers.is_pipe(loader.dataset):
        flags |= UNTIMED
    return flags


def _start_method(loader: Any) -> str:
    if loader.num_workers == 0:
        return ""
    context = loader.multiprocessing_context
    if context is None:
        import multiprocessing

        return multiprocessing.get_start_method(allow_none=True) or "fork"
    return str(context.get_start_method())


def _settings(loader: Any) -> tuple[Any, ...]:
    iterable = int(loader._dataset_kind) != 0
    batch_sampler = getattr(loader, "batch_sampler", None)
    default = type(batch_sampler).__name__ == "BatchSampler" or batch_sampler is None
    sampler = loader.sampler if default else batch_sampler
    file, line = loader.__dict__.get("_sonde_made", ("", 0))
    return (
        file,
        line,
        type(loader).__name__,
        type(workers.unwrapped(loader.dataset)).__name__,
        "" if iterable else type(sampler).__name__,
        _name(loader.collate_fn),
        _start_method(loader),
        -1 if iterable else _length(loader.dataset, sampler),
        loader.num_workers,
        -1 if loader.prefetch_factor is None else loader.prefetch_factor,
        -1 if loader.batch_size is None else loader.batch_size,
        _flags(loader),
        float(loader.timeout),
    )


# Settings of a loader -> its number, and who it was. One that is made anew for each epoch
# is one loader: the same place, the same settings, and the one before is gone.
_rows: dict[tuple[Any, ...], tuple[int, Any]] = {}


def _row_of(loader: Any, life: int) -> int:
    settings = (life, *_settings(loader))
    number, last = _rows.get(settings, (-1, None))
    if number < 0 or last() is not None:
        number = int(_sonde.loader_new(*settings[1:]))
        if number >= 0 and loader.num_workers > 0:
            _sonde.loader_objects(number, objects.largest(loader.dataset))
    if number >= 0 and (settings in _rows or len(_rows) < _MOST_ROWS):
        _rows[settings] = number, weakref.ref(loader)
    return number


def number_of(loader: Any) -> int:
    """The loader's number in this process's book; -1: nothing is written down."""
    life = _sonde.loader_open()
    known = loader.__dict__.get("_sonde_number")
    if known is not None and known[0] == life:
        return int(known[1])
    if not life:
        return -1
    number = _row_of(loader, life)
    loader.__dict__["_sonde_number"] = (life, number)
    return number


# ---- one epoch ----


def _iter_begins(loader: Any, *_: Any) -> None:
    _local.started = _sonde.ticks()
    if loader.num_workers > 0:
        workers.generation += 1  # before they are forked, who know it by that


def _started() -> int:
    started = getattr(_local, "started", 0)
    _local.started = 0
    return started or int(_sonde.ticks())


def _iter_ends(iterator: Any, *_: Any) -> None:
    watched = getattr(iterator, "_sonde", None)
    if watched is not None:
        watched.begun()


def _single_made(_: Any, iterator: Any, loader: Any) -> None:
    number = number_of(loader)
    if number < 0:
        return
    iterator._sonde = _sonde.Fetches(number, multi=False)
    iterator._sonde.begin(_started())
    workers.watch_fetcher(iterator._dataset_fetcher, number)


def _multi_resets(iterator: Any, loader: Any, *_: Any) -> None:
    """The workers run, or run on (persistent ones), and get their first indices next."""
    number = number_of(loader)
    if number < 0:
        return
    watched = getattr(iterator, "_sonde", None)
    started = _started()
    if watched is None or not watched.live:
        capacity = loader.num_workers * (loader.prefetch_factor or 2)
        watched = _sonde.Fetches(
            number,
            multi=True,
            ordered=bool(getattr(loader, "in_order", True)),
            capacity=capacity,
        )
        iterator._sonde = watched
        watched.begin(started)
        for i, worker in enumerate(iterator._workers):
            watched.worker(i, worker.pid, started)
        _watch_queue(iterator, watched)
    else:
        watched.begin(started)


def _watch_queue(iterator: Any, watched: Any) -> None:
    from torch.utils.data import _utils

    stop = _utils.worker._IterableDatasetStopIteration
    queue = iterator._data_queue
    if iterator._pin_memory:
        watched.watch(-1, queue.queue, -1, stop)
        watched.pinner(iterator._pin_memory_thread.ident)
        return
    watched.watch(
        queue._reader.fileno(),
        queue._sem._semlock._get_value,
        queue._maxsize,
        stop,
    )
    if not isinstance(queue._poll, _sonde.Hook):
        queue._poll = _sonde.Hook(queue._poll, "polling", owner=watched)
