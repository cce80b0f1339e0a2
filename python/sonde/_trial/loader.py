"""The data loader with other settings, and with samples or batches that cost less.

Settings are changed where DataLoader is made; samples and collating where a fetcher is
made of the data set, in the main process or in a worker. The data set and the sampler
stay the program's own.
"""

from __future__ import annotations

import inspect
import os
import sys
from typing import Any

from . import lengths, memo

_MARK = "_sonde_trial"


def torch_came(course: Any, torch: Any) -> None:
    spec = course.spec
    if not any(k in spec for k in ("loader", "sample", "collate", "free", "lengths")):
        return
    from torch.utils import data
    from torch.utils.data import dataloader

    _Loaders(course, data, dataloader)


class _Loaders:
    def __init__(self, course: Any, data: Any, dataloader: Any) -> None:
        self.course = course
        spec = course.spec
        self.settings = spec.get("loader")
        self.sample, self.collate = spec.get("sample"), spec.get("collate")
        self.place = str(spec.get("place", ""))
        self.part = course.part("loader")
        self.lengths = course.part("lengths") if spec.get("lengths") else None
        self.workers = -1
        self._pid = self._collate_pid = 0  # whose memos they are
        self._patch_init(dataloader.DataLoader)
        if self.sample or self.collate:
            self._patch_fetcher(data._DatasetKind)
        if spec.get("free"):
            for name in ("_SingleProcessDataLoaderIter", "_MultiProcessingDataLoaderIter"):
                self._patch_next(getattr(dataloader, name))
        course.looks.append(self._look)

    # ---- which loader ----

    def _is_ours(self) -> bool:
        """Whether the loader that is being made is the one that trains."""
        if not self.place:
            return True
        frame: Any = sys._getframe(2)
        for _ in range(12):
            if frame is None:
                break
            code = frame.f_code
            here = f"{os.path.basename(code.co_filename)}:{frame.f_lineno}"
            if here == self.place:
                return True
            # A call over several lines: the line that was told is the first or the last.
            name, _, line = self.place.rpartition(":")
            if (
                os.path.basename(code.co_filename) == name
                and line.isdigit()
                and abs(int(line) - frame.f_lineno) <= 12
                and code.co_firstlineno <= int(line)
                and _same_statement(code, frame, int(line))
            ):
                return True
            frame = frame.f_back
        return False

    # ---- settings ----

    def _patch_init(self, cls: type) -> None:
        real = cls.__init__  # type: ignore[misc]
        signature = inspect.signature(real)
        loaders = self

        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            ours = loaders._is_ours()
            if ours and loaders.settings:
                args, kwargs = loaders._changed(signature, self, args, kwargs)
            real(self, *args, **kwargs)
            if ours:
                loaders._made(self)
            if ours and loaders.lengths is not None:
                bound = signature.bind(self, *args, **kwargs).arguments
                own = bound.get("batch_sampler") is not None
                lengths.install(loaders.course, loaders.lengths, self, own)

        cls.__init__ = __init__  # type: ignore[misc]

    def _changed(self, signature: Any, loader: Any, args: Any, kwargs: Any) -> Any:
        try:
            bound = signature.bind(loader, *args, **kwargs)
        except TypeError:
            return args, kwargs
        given = bound.arguments
        more = dict(given.pop("kwargs", {}) or {})
        set_ = self.settings
        if "workers" in set_:
            workers = int(set_["workers"])
            given["num_workers"] = workers
            if workers == 0:
                for name in (
                    "prefetch_factor",
                    "persistent_workers",
                    "timeout",
                    "multiprocessing_context",
                ):
                    given.pop(name, None)
        workers = given.get("num_workers", 0)
        if set_.get("prefetch") and workers > 0:
            given["prefetch_factor"] = int(set_["prefetch"])
        if set_.get("persistent") and workers > 0:
            given["persistent_workers"] = True
        if set_.get("batch"):
            self._larger(given, float(set_["batch"]))
        given.pop("self", None)
        return (), {**given, **more}

    def _larger(self, given: dict[str, Any], times: float) -> None:
        if given.get("batch_sampler") is not None or given.get("batch_size", 1) is None:
            self.part.why = "its batches are made by a sampler of the program's own"
            return
        given["batch_size"] = max(round(given.get("batch_size", 1) * times), 1)

    def _made(self, loader: Any) -> None:
        self.workers = loader.num_workers
        try:
            object.__setattr__(loader.dataset, _MARK, True)
        except Exception:  # slots, a list: known by its address while this process lives
            _marked.add(id(loader.dataset))
            _kept.append(loader.dataset)

    def _look(self) -> None:
        if self.part.settled or self.workers < 0 or not self.course.past_start:
            return
        spec = self.course.spec
        if self.workers > 0:
            files = [k for k in ("sample", "collate") if spec.get(k)]
            ready = all(os.path.exists(self._file(k)) for k in files)
        else:
            ready = all(m.ready for m in _memos)
            ready = ready and bool(_memos or not (self.sample or self.collate))
        if spec.get("free"):
            ready = ready and bool(_frees) and all(m.ready for m in _frees)
        self.part.settled = ready

    # ---- samples and collate ----

    def _file(self, kind: str) -> str:
        return os.path.join(self.course.scratch, f"kept-{kind}")

    def _memo(self, kind: str, spec: dict[str, Any], **more: Any) -> memo.Memo:
        import multiprocessing

        in_worker = multiprocessing.parent_process() is not None
        made = memo.Memo(
            float(spec.get("left", 0)),
            1e3 * float(spec.get("least_us", 0)),
            1e3 * float(spec.get("us_per_mb", 0)),
            bool(spec.get("even", False)),
            file=self._file(kind) if in_worker else None,
            **more,
        )
        _memos.append(made)
        return made

    def _patch_fetcher(self, kind: Any) -> None:
        real = kind.create_fetcher
        loaders = self

        def create_fetcher(
            kind: int, dataset: Any, auto: bool, collate: Any, *rest: Any
        ) -> Any:
            if loaders._is_marked(dataset):
                if loaders.sample:
                    dataset = _wrap(dataset, loaders._sample_memo(), kind != 0)
                if loaders.collate:
                    collate = _Collate(collate, loaders._collate_memo())
            return real(kind, dataset, auto, collate, *rest)

        kind.create_fetcher = staticmethod(create_fetcher)

    def _sample_memo(self) -> memo.Memo:
        if self._pid != os.getpid():
            self._pid = os.getpid()
            del _memos[:]
            self._samples = self._memo("sample", self.sample)
        return self._samples

    def _collate_memo(self) -> memo.Memo:
        if self._collate_pid != os.getpid():
            self._collate_pid = os.getpid()
            self._collates = self._memo("collate", self.collate, deep=True, calls=8)
        return self._collates

    def _is_marked(self, dataset: Any) -> bool:
        if any("DataPipe" in c.__name__ for c in type(dataset).__mro__):
            return False
        if not self.place:
            return True
        if id(dataset) in _marked:
            return True
        return bool(getattr(dataset, "__dict__", {}).get(_MARK))

    # ---- batches for nothing ----

    def _patch_next(self, cls: type) -> None:
        real = cls._next_data  # type: ignore[attr-defined]
        loaders = self

        def _next_data(self: Any) -> Any:
            marked = loaders._is_marked(self._dataset)
            if not marked:
                return real(self)
            if not _frees:
                _frees.append(memo.Memo(0.0, deep=True, calls=6))
            return _frees[0].call(real, self)

        cls._next_data = _next_data  # type: ignore[attr-defined]


_marked: set[int] = set()
_kept: list[Any] = []
_memos: list[memo.Memo] = []
_frees: list[memo.Memo] = []


def _same_statement(code: Any, frame: Any, line: int) -> bool:
    """Whether both lines belong to one call, as far as a line table tells."""
    try:
        import linecache

        first, last = sorted((line, frame.f_lineno))
        text = "".join(
            linecache.getline(code.co_filename, n) for n in range(first, last + 1)
        )
        return "DataLoader" in text or text.count("(") != text.count(")")
    except Exception:
        return False


class _Collate:
    def __init__(self, real: Any, kept: memo.Memo) -> None:
        self.real, self.kept = real, kept
        self.__name__ = getattr(real, "__name__", None) or type(real).__name__

    def __call__(self, samples: Any) -> Any:
        return self.kept.call(self.real, samples)


class _Samples:
    """In the place of the data set, in front of a fetcher."""

    def __init__(self, dataset: Any, kept: memo.Memo) -> None:
        self.dataset, self._sonde_kept = dataset, kept

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.__dict__["dataset"], name)

    def __len__(self) -> int:
        return len(self.dataset)


class _Mapped(_Samples):
    def __getitem__(self, index: Any) -> Any:
        return self._sonde_kept.call(self.dataset.__getitem__, index)


class _Batched(_Mapped):
    def __getitems__(self, indices: Any) -> Any:
        return self._sonde_kept.call(self.dataset.__getitems__, indices)


class _Iterated(_Samples):
    def __iter__(self) -> Any:
        return _Iterator(iter(self.dataset), self._sonde_kept)


class _Iterator:
    def __init__(self, real: Any, kept: memo.Memo) -> None:
        self.real, self.kept = real, kept

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        return self.kept.call(next, self.real)


def _wrap(dataset: Any, kept: memo.Memo, iterable: bool) -> Any:
    whole = hasattr(type(dataset), "__getitems__") and type(dataset).__name__ != "Subset"
    base: type = _Iterated if iterable else _Batched if whole else _Mapped
    cls = type(type(dataset).__name__, (base,), {"__module__": type(dataset).__module__})
    return cls(dataset, kept)
