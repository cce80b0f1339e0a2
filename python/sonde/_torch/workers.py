"""Where samples are made: a worker process, or the main one without any.

A fetcher is torch's object that makes batches. In a worker it is made inside
`_worker_loop`, whose queues are found in the frame that called us: they are the worker's
own, nobody else sees that they are watched.
"""

from __future__ import annotations

import multiprocessing.queues
import sys
from typing import Any

from .. import _sonde
from . import lineage, transforms

_worker: Any = None  # the Maker of the worker that this process is
generation = 0  # how often workers were started here; 0 in those that were not forked

_MOST_LOOKING = 4


def install(data: Any, _utils: Any) -> None:
    hook = _sonde.Hook
    for fetcher in (
        _utils.fetch._MapDatasetFetcher,
        _utils.fetch._IterableDatasetFetcher,
    ):
        fetcher.fetch = hook(fetcher.fetch, "making")
    kind = data._DatasetKind
    kind.create_fetcher = staticmethod(hook(kind.create_fetcher, after=_fetcher_made))


def is_pipe(dataset: Any) -> bool:
    """A DataPipe, or torch's wrapper of one: left alone."""
    return any("DataPipe" in c.__name__ for c in type(dataset).__mro__)


def unwrapped(dataset: Any) -> Any:
    inner = dataset.__dict__.get("_datapipe") if hasattr(dataset, "__dict__") else None
    return dataset if inner is None else inner


def watch_fetcher(fetcher: Any, loader: int) -> None:
    """The main process makes the batches of this loader by itself."""
    maker = _sonde.Maker(loader, *_names(fetcher), lineage.describe)
    _watch(fetcher, maker)


def _names(fetcher: Any) -> tuple[str, str]:
    dataset = type(unwrapped(fetcher.dataset)).__name__
    what = "__next__" if hasattr(fetcher, "dataset_iter") else "__getitem__"
    collate = getattr(fetcher.collate_fn, "__name__", None)
    return f"{dataset}.{what}", collate or type(fetcher.collate_fn).__name__


def _watch(fetcher: Any, maker: Any) -> None:
    dataset = fetcher.dataset
    standin = None
    slots: list[transforms.Slot] = []
    if not is_pipe(dataset):
        slots = transforms.slots(dataset, maker)
        if hasattr(fetcher, "dataset_iter"):
            fetcher.dataset_iter = _sonde.loader_standin(fetcher.dataset_iter, maker)
        else:
            standin = _sonde.loader_standin(dataset, maker)
    fetcher.collate_fn = _sonde.Hook(fetcher.collate_fn, "collating", owner=maker)
    fetcher._sonde = _sonde.Making(maker, dataset, standin, slots)


# ---- in a worker ----


def _fetcher_made(fetcher: Any, *_: Any) -> None:
    """A fetcher was made: by _worker_loop, in a worker?"""
    global _worker
    caller = sys._getframe(1)
    if caller.f_code.co_name != "_worker_loop":
        return  # the main process: loader.py knows more
    if _worker is not None and _worker.live:
        _worker.again()  # another epoch of a persistent worker
    elif _sonde.loader_open():
        _worker = _begin(caller.f_locals, fetcher)
    if _worker is not None and _worker.live:
        _watch(fetcher, _worker)


def _looks(number: int) -> bool:
    """Whether it looks at its memory: a few tell of all, and where each epoch starts
    workers anew the 1st, 2nd, 4th, 8th … do. Others share nothing that could be copied."""
    return (
        number < _MOST_LOOKING and generation > 0 and generation & (generation - 1) == 0
    )


def _begin(local: Any, fetcher: Any) -> Any:
    number = local["worker_id"]
    _sonde.process_role(f"loader worker {number}")
    maker = _sonde.Maker(
        -1,
        *_names(fetcher),
        lineage.describe,
        number,
        local["num_workers"],
        _looks(number),
    )
    _watch_queues(local["index_queue"], local["data_queue"], maker)
    return maker


def _watch_queues(index_queue: Any, data_queue: Any, maker: Any) -> None:
    """Waiting for an index, and the way back: pickled and sent by a thread that does
    not run yet, and takes what it finds in the queue and its module."""
    hook = _sonde.Hook
    index_queue.get = hook(index_queue.get, "waiting", owner=maker)
    data_queue.put = hook(data_queue.put, "putting", owner=maker)
    data_queue._send_bytes = hook(data_queue._send_bytes, "posting", owner=maker)
    pickler = multiprocessing.queues._ForkingPickler  # type: ignore[attr-defined]
    timed = type(pickler.__name__, (pickler,), {"__module__": pickler.__module__})
    timed.dumps = hook(pickler.dumps, "pickling", owner=maker)  # type: ignore[attr-defined]
    multiprocessing.queues._ForkingPickler = timed  # type: ignore[attr-defined]
