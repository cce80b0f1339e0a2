"""Data in pieces: chunks of a sequence or a stream, and data sets larger than memory."""

from __future__ import annotations

import itertools
import queue
import threading
from typing import Any, Callable, Generic, Iterable, Iterator, Optional, TypeVar

from . import _limits
from ._values import bytes_of

T = TypeVar("T")

PIECES = 4  # of the room: chunks being made, waiting, in use, and one to spare
_END = object()


# ---- reading ahead ---------------------------------------------------------------------


class ReadAhead(Generic[T]):
    """An iterator whose next items are made by a thread while the last one is used.

    Never more than `depth` wait. close(), or losing it, ends the thread."""

    def __init__(self, items: Callable[[], Iterable[T]], depth: int = 1) -> None:
        self._queue: queue.Queue[Any] = queue.Queue(max(1, depth))
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=_produce, args=(items, self._queue, self._stop), daemon=True
        )
        self._thread.start()

    def __iter__(self) -> "ReadAhead[T]":
        return self

    def __next__(self) -> T:
        if self._stop.is_set():
            raise StopIteration
        kind, item = self._queue.get()
        if kind is _END:
            self.close()
            if item is not None:
                raise item
            raise StopIteration
        return item  # type: ignore[no-any-return]

    def close(self) -> None:
        self._stop.set()
        while self._thread.is_alive():  # it may wait for room in the queue
            try:
                self._queue.get_nowait()
            except queue.Empty:
                self._thread.join(0.01)

    def __del__(self) -> None:
        self._stop.set()


def _produce(
    items: Callable[[], Iterable[Any]],
    target: "queue.Queue[Any]",
    stop: threading.Event,
) -> None:
    def put(kind: Any, item: Any) -> bool:
        while not stop.is_set():
            try:
                target.put((kind, item), timeout=0.05)
                return True
            except queue.Full:
                continue
        return False

    try:
        for item in items():
            if not put(None, item):
                return
        put(_END, None)
    except BaseException as error:  # belongs to whoever iterates
        put(_END, error)


# ---- chunks ----------------------------------------------------------------------------


def chunk_samples(sample: Any, config: Any) -> int:
    """Samples in a chunk: chunk_size, fewer where several chunks would not fit."""
    if not config.memory_efficient:
        return int(config.chunk_size)
    room = _limits.room_bytes(config.max_memory_usage)
    if room is None:
        return int(config.chunk_size)
    fitting = room // PIECES // max(1, bytes_of(sample))
    return int(max(1, min(config.chunk_size, fitting)))


def chunks(data: Any, config: Optional[Any] = None) -> Iterator[Any]:
    """The data in pieces of `config.chunk_size` samples.

        for piece in sonde.optimize.chunks(rows, sonde.Config(chunk_size=500)):
            process(piece)

    Sequences, arrays and tensors are sliced (arrays without a copy); of anything else that
    can be iterated, a file or a generator, each piece is a list, and one piece is in memory
    at a time. With `memory_efficient` pieces are smaller where `max_memory_usage` asks for
    it.
    """
    from .._config import Config

    config = config or Config()
    if isinstance(data, (dict, set, frozenset)) or not hasattr(data, "__getitem__"):
        return _iterated(iter(data), config)
    return _sliced(data, config)


def _sliced(data: Any, config: Any) -> Iterator[Any]:
    count = len(data)
    size = chunk_samples(data[0], config) if count else 1
    for start in range(0, count, size):
        yield data[start : start + size]


def _iterated(samples: Iterator[Any], config: Any) -> Iterator[list[Any]]:
    for first in samples:
        size = chunk_samples(first, config)
        yield [first, *itertools.islice(samples, size - 1)]


# ---- a data set as a stream ------------------------------------------------------------


class StreamedDataset:
    """The samples of a data set in order, a chunk at a time, the next chunk being read
    while one is used (`async_io`). At most two chunks are in memory, nothing is kept.

    It can be iterated again and again, and be given to torch's DataLoader like any other
    data set: single samples are read as they are asked for."""

    def __init__(self, dataset: Any, config: Any) -> None:
        self._dataset, self._config = dataset, config

    def __iter__(self) -> Iterator[Any]:
        if not self._config.async_io:
            yield from itertools.chain.from_iterable(self.chunks())
            return
        ahead = ReadAhead(self.chunks)
        try:
            for piece in ahead:
                yield from piece
        finally:
            ahead.close()

    def chunks(self) -> Iterator[list[Any]]:
        """The samples, a list of `chunk_size` at a time."""
        return _iterated(self._samples(), self._config)

    def _samples(self) -> Iterator[Any]:
        if hasattr(self._dataset, "__getitem__") and hasattr(self._dataset, "__len__"):
            return (self._dataset[i] for i in range(len(self._dataset)))
        return iter(self._dataset)

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, index: Any) -> Any:
        return self._dataset[index]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_dataset" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self._dataset, name)
