"""sonde.optimize.read and reader: a file's contents, the fastest way for this file.

Four ways: plain (one call), buffered (blocks of buffer_size), mapped (the kernel's pages),
ahead (a thread reads the next blocks while one is used). Small files are read plainly;
which way is faster for a large one depends on what is done with the blocks, so it is
measured, on the first part of the file.
"""

from __future__ import annotations

import mmap
import os
import time
from typing import Any, Callable, Iterator, Optional, Union

from ._files import PathLike
from ._measure import Candidate, decide
from ._receipt import Receipt, Trial
from ._stream import ReadAhead

SMALL = 1 << 20  # bytes up to which nothing is gained
PART = 16 << 20  # bytes that a trial reads
DEPTH = 8  # blocks that wait at most

Way = Callable[[Any, int, Optional[int]], Iterator[bytes]]


def _plain(path: PathLike, size: int, most: Optional[int]) -> Iterator[bytes]:
    with open(path, "rb", buffering=0) as file:
        pieces, left = [], -1 if most is None else most
        while left:
            piece = file.read(left)
            if not piece:
                break
            pieces.append(piece)
            left = -1 if most is None else left - len(piece)
        yield pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _buffered(path: PathLike, size: int, most: Optional[int]) -> Iterator[bytes]:
    left = float("inf") if most is None else most
    with open(path, "rb", buffering=0) as file:
        while left > 0:
            block = file.read(int(min(size, left)))
            if not block:
                return
            left -= len(block)
            yield block


def _mapped(path: PathLike, size: int, most: Optional[int]) -> Iterator[bytes]:
    with open(path, "rb") as file:
        length = os.fstat(file.fileno()).st_size
        length = length if most is None else min(length, most)
        if not length:
            return
        with mmap.mmap(file.fileno(), length, access=mmap.ACCESS_READ) as pages:
            for start in range(0, length, size):
                yield pages[start : start + size]


def _ahead(path: PathLike, size: int, most: Optional[int]) -> Iterator[bytes]:
    ahead = ReadAhead(lambda: _buffered(path, size, most), DEPTH)
    try:
        yield from ahead
    finally:
        ahead.close()


WAYS: dict[str, Way] = {
    "plain": _plain,
    "buffered": _buffered,
    "mapped": _mapped,
    "ahead": _ahead,
}


class Reader:
    """A file to be read, in one piece or in blocks.

        reader()                    # its contents
        for block in reader: ...    # blocks of buffer_size
        reader.mode, reader.receipt
    """

    def __init__(self, path: PathLike, mode: str, block: int, receipt: Receipt) -> None:
        self.path, self.mode, self.block, self.receipt = path, mode, block, receipt

    def __iter__(self) -> Iterator[bytes]:
        mode = "buffered" if self.mode == "plain" else self.mode
        return WAYS[mode](self.path, self.block, None)

    def __call__(self) -> bytes:
        return b"".join(WAYS[self.mode](self.path, self.block, None))


def reader(
    path: PathLike,
    config: Optional[Any] = None,
    *,
    process: Optional[Callable[[bytes], Any]] = None,
    budget_s: float = 5.0,
) -> Reader:
    """The fastest way to read a file: as a whole, or with `process` in blocks of
    `buffer_size` bytes, each given to `process(block)`.

        found = sonde.optimize.reader("train.bin", process=digest.update)
        for block in found:
            digest.update(block)

    Files up to 1 MiB are read as they are. Of larger ones the first 16 MiB are tried: in
    blocks, mapped, and with `async_io` read ahead by a thread (they are in memory by then:
    the disk itself is not measured; `process` is called with them more than once).
    `optimize_io=False` tries nothing.
    """
    from .._config import Config

    config = config or Config()
    size = os.stat(path).st_size
    receipt = Receipt(f"reading {os.fspath(path)}", analysis={"bytes": size})
    made = Reader(path, _own(process), config.buffer_size, receipt)
    if not config.optimize_io:
        receipt.keep(made.mode, "optimize_io is off")
    elif size <= SMALL:
        receipt.keep(made.mode, "the file is small")
    else:
        began = time.monotonic()
        made.mode = _choose(path, config, process, receipt, began + budget_s)
        receipt.seconds = time.monotonic() - began
    receipt.settings = {"mode": made.mode, "block": made.block}
    return made


def _own(process: Any) -> str:
    """How a program reads that does nothing about it."""
    return "plain" if process is None else "buffered"


def _choose(
    path: PathLike, config: Any, process: Any, receipt: Receipt, deadline: float
) -> str:
    own = _own(process)
    names = [n for n in WAYS if config.async_io or n != "ahead"]
    names = names[names.index(own) :]  # whole files are of no use for blocks
    tried = [_candidate(n, path, config, process, receipt) for n in names]
    best = decide(
        receipt, tried[0], tried[1:], config.optimization_threshold, deadline
    )
    if best is None:
        return own
    if not config.auto_optimize:
        receipt.keep(own, f"{best.trial.name} is faster, but auto_optimize is off")
        return own
    receipt.accepted, receipt.chosen = True, best.trial.name
    receipt.reason = f"saves at least {receipt.gain.low:.0%}" if receipt.gain else ""
    return best.trial.name


def _candidate(
    name: str, path: PathLike, config: Any, process: Any, receipt: Receipt
) -> Candidate:
    trial = Trial(name, {"mode": name, "block": config.buffer_size})
    receipt.trials.append(trial)

    def run() -> float:
        start = time.perf_counter()
        blocks = WAYS[name](path, config.buffer_size, PART)
        if process is None:
            b"".join(blocks)
        else:
            for block in blocks:
                process(block)
        return time.perf_counter() - start

    return Candidate(trial, run)


def read(
    path: PathLike, config: Optional[Any] = None, *, encoding: Optional[str] = None
) -> Union[bytes, str]:
    """A file's contents by the fastest way; text with an `encoding`.

    data = sonde.optimize.read("vocabulary.txt", encoding="utf-8")
    """
    data = reader(path, config)()
    return data if encoding is None else data.decode(encoding)
