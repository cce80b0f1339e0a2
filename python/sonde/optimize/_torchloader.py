"""torch's DataLoader: what it is set to, the same with other settings, timing a part.

A loader with other settings is a copy, so that subclasses and what later versions of torch
add stay as they are; the constructor's checks have been passed once.
"""

from __future__ import annotations

import copy
import functools
import itertools
import time
import warnings
from typing import Any, Callable, Iterator, Optional

from ._values import RandomState

SETTINGS = ("num_workers", "prefetch_factor", "pin_memory", "persistent_workers")


def torch_data() -> Any:
    try:
        import torch.utils.data as data
    except ImportError as error:
        raise ImportError(
            "sonde.optimize.loader() needs torch; dataset(), preprocessing(), memory() and "
            "reader() do without"
        ) from error
    return data


def cuda_available() -> bool:
    import torch

    try:
        return bool(torch.cuda.is_available())
    except Exception:  # a broken driver: no pinning then
        return False


def settings_of(loader: Any) -> dict[str, Any]:
    return {name: getattr(loader, name) for name in SETTINGS}


def with_settings(loader: Any, settings: dict[str, Any], **more: Any) -> Any:
    """A copy with these settings; it shares sampler, generator and data set."""
    changed = dict(settings)
    size = changed.pop("batch_size", None)
    if changed.get("num_workers") == 0:
        own = loader.prefetch_factor if loader.num_workers == 0 else _unset_prefetch()
        changed.update(prefetch_factor=own, persistent_workers=False, timeout=0)
    clone = copy.copy(loader)
    if changed.get("persistent_workers") and not _keeps(loader):
        clone.__class__ = _steady(type(loader))
    clone.__dict__.update(changed)
    clone.__dict__.update(more)
    clone.__dict__["_iterator"] = None
    if size is not None and "batch_sampler" not in more:
        sampler = torch_data().BatchSampler(loader.sampler, size, loader.drop_last)
        clone.__dict__.update(batch_size=size, batch_sampler=sampler)
    return clone


def _keeps(loader: Any) -> bool:
    return bool(loader.persistent_workers and loader.num_workers)


@functools.lru_cache(maxsize=None)
def _steady(base: type) -> type:
    """The class, made to draw as many random numbers each epoch with kept workers as
    without: torch draws a seed for new workers and none for kept ones, so that from the
    second epoch on shuffling, and all else that draws from that generator, would differ."""
    import torch

    data = torch_data()
    iterator = data.dataloader._BaseDataLoaderIter
    if "_base_seed" in iterator._reset.__code__.co_names:
        return base  # a torch that draws one for kept workers, too

    def begin(self: Any) -> Any:
        if _keeps(self) and self._iterator is not None:
            torch.empty((), dtype=torch.int64).random_(generator=self.generator)
        return base.__iter__(self)  # type: ignore[attr-defined]

    names = {"__iter__": begin, "__module__": base.__module__, "__doc__": base.__doc__}
    return type(base.__name__, (base,), names)


def _unset_prefetch() -> Optional[int]:
    """What a loader without workers has: None since 2.0, 2 before."""
    value: Optional[int] = torch_data().DataLoader([0]).prefetch_factor
    return value


def random_state(loader: Any) -> RandomState:
    """Of everything that iterating may draw from."""
    owners = (loader, loader.sampler, getattr(loader.batch_sampler, "sampler", None))
    found = [getattr(owner, "generator", None) for owner in owners]
    return RandomState(*{id(g): g for g in found if g is not None}.values())


def first_batches(loader: Any, most: int) -> list[Any]:
    """The indices the loader would ask for first."""
    source = loader.sampler if loader.batch_sampler is None else loader.batch_sampler
    return list(itertools.islice(iter(source), most))


def fixed(loader: Any, batches: list[Any]) -> dict[str, Any]:
    """What makes a copy go through these batches, every time."""
    if loader.batch_sampler is None:
        return {"sampler": batches}
    return {"batch_sampler": batches}


def close(loader: Any) -> None:
    """End the workers that a loader keeps."""
    iterator = loader.__dict__.get("_iterator")
    loader.__dict__["_iterator"] = None
    shutdown = getattr(iterator, "_shutdown_workers", None)
    if shutdown is not None:
        shutdown()


def batches_of(loader: Any, most: int) -> Iterator[Any]:
    """The first batches; workers that are not kept are ended behind them."""
    with warnings.catch_warnings():  # more workers than cores are a trial here, no advice
        warnings.simplefilter("ignore", UserWarning)
        iterator = iter(loader)
    try:
        yield from itertools.islice(iterator, most)
    finally:
        if loader.__dict__.get("_iterator") is not iterator:
            shutdown = getattr(iterator, "_shutdown_workers", None)
            if shutdown is not None:
                shutdown()


class Pass:
    """One pass over the first batches, with a step behind each."""

    def __init__(self, step: Optional[Callable[[Any], Any]]) -> None:
        self.step, self.count = step, 0
        self.first_s = self.first_step_s = self.total_s = self.wait_s = 0.0

    def run(self, loader: Any, most: int) -> "Pass":
        begin = asked = time.perf_counter()
        for batch in batches_of(loader, most):
            given = time.perf_counter()
            self.wait_s += given - asked
            self.first_s = self.first_s or given - begin
            if self.step is not None:
                self.step(batch)
            self.count += 1
            asked = time.perf_counter()
            self.total_s = asked - begin
            self.first_step_s = self.first_step_s or self.total_s
        return self

    def epoch_s(self, batches: Optional[int]) -> float:
        """What a whole epoch takes: the first batch, in which workers start, counts once."""
        if batches is None or batches <= self.count or self.count < 2:
            return self.total_s
        each = (self.total_s - self.first_step_s) / (self.count - 1)
        return self.first_step_s + (batches - 1) * each
