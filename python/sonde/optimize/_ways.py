"""Ways to run a list of functions over samples: one after the other, in threads, in
processes, whole lists at once, or remembering what came before.

Each gives exactly what the first one gives; whoever makes one has to check that.
"""

from __future__ import annotations

import concurrent.futures
import hashlib
import multiprocessing
import pickle
import warnings
from collections import OrderedDict
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Callable, Optional, Sequence

from ._values import fresh, is_array, is_tensor, same

Function = Callable[[Any], Any]


class WorkerDied(RuntimeError):
    """A process of the pool ended in the middle of its work."""


def through(functions: Sequence[Function], sample: Any) -> Any:
    """One sample through all functions."""
    for function in functions:
        sample = function(sample)
    return sample


class Sequential:
    name = "sequential"

    def __init__(self, functions: Sequence[Function]) -> None:
        self.functions = list(functions)

    def one(self, sample: Any) -> Any:
        return through(self.functions, sample)

    def many(self, samples: list[Any]) -> list[Any]:
        return [through(self.functions, sample) for sample in samples]

    def forget(self) -> None:
        """What it remembers of samples, so that a trial begins like the first time."""

    def close(self) -> None:
        pass


# ---- pools -----------------------------------------------------------------------------


def _pieces(samples: list[Any], workers: int) -> list[list[Any]]:
    size = max(1, len(samples) // (workers * 4))
    return [samples[i : i + size] for i in range(0, len(samples), size)]


class Threads(Sequential):
    """For functions that wait or leave the interpreter's lock."""

    name = "threads"

    def __init__(self, functions: Sequence[Function], workers: int) -> None:
        super().__init__(functions)
        self.workers = workers
        self._pool: Optional[concurrent.futures.Executor] = None

    def _start(self) -> concurrent.futures.Executor:
        return concurrent.futures.ThreadPoolExecutor(self.workers, "sonde-preprocess")

    def many(self, samples: list[Any]) -> list[Any]:
        if len(samples) < 2:
            return super().many(samples)
        if self._pool is None:
            self._pool = self._start()
        parts = self._pool.map(super().many, _pieces(samples, self.workers))
        return [result for part in parts for result in part]

    def close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True)


_functions: list[Function] = []  # of a worker process


def _begin(functions: list[Function]) -> None:
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's interrupt ends the pool
    _functions[:] = functions


def _work(samples: list[Any]) -> list[Any]:
    return [through(_functions, sample) for sample in samples]


class Processes(Threads):
    """For functions that compute in Python. Workers are forked where that is possible:
    functions then need not be importable; samples and results have to be picklable."""

    name = "processes"

    def _start(self) -> concurrent.futures.Executor:
        methods = multiprocessing.get_all_start_methods()
        context = multiprocessing.get_context("fork" if "fork" in methods else None)
        return concurrent.futures.ProcessPoolExecutor(
            self.workers, context, initializer=_begin, initargs=(self.functions,)
        )

    def many(self, samples: list[Any]) -> list[Any]:
        if len(samples) < 2:
            return Sequential.many(self, samples)
        if self._pool is None:
            self._pool = self._start()
        try:
            with warnings.catch_warnings():  # 3.12 warns of forks beside threads
                warnings.simplefilter("ignore", DeprecationWarning)
                parts = self._pool.map(_work, _pieces(samples, self.workers))
            return [result for part in parts for result in part]
        except BrokenProcessPool as error:
            self.close()
            raise WorkerDied(
                "a preprocessing worker died (killed, out of memory, or crashed in one of "
                "the functions); the results of this call are lost, the next one starts "
                "new workers"
            ) from error
        except KeyboardInterrupt:
            self.kill()
            raise

    def kill(self) -> None:
        """End the workers without waiting for what they do."""
        pool, self._pool = self._pool, None
        for process in list((getattr(pool, "_processes", None) or {}).values()):
            process.terminate()
        if pool is not None:
            pool.shutdown(wait=True)  # which waits for no work any more


# ---- whole lists -----------------------------------------------------------------------


def _as_list(function: Function, samples: list[Any]) -> list[Any]:
    """The function on a list of samples."""
    return list(function(samples))


def _stacked(function: Function, samples: list[Any]) -> list[Any]:
    """The function on one array, or tensor, of all samples."""
    if is_tensor(samples[0]):
        import torch

        return list(function(torch.stack(samples)))
    import numpy

    return list(function(numpy.stack(samples)))


def batch_form(
    function: Function, samples: list[Any], results: list[Any], stack: bool
) -> Any:
    """How a function takes a whole batch with these very results, or None. Whole and in
    halves: a result must not depend on who else is in the batch. A function that hands
    samples back untouched may not have looked at them, and would not at others."""
    arrays = stack and all(is_array(s) or is_tensor(s) for s in samples)
    half = len(samples) // 2
    for form in (_as_list, *([_stacked] if arrays else [])):
        given = fresh(samples)
        try:
            whole = form(function, given)
            parts = form(function, fresh(samples[:half]))
            parts += form(function, fresh(samples[half:]))
        except Exception:  # it wants single samples
            continue
        # Of small numbers and strings there is one each: some may be the same.
        untouched = all(a is b for a, b in zip(whole, given))
        if not untouched and same(whole, results) and same(parts, results):
            return form
    return None


class Batched(Sequential):
    """Functions that take batches get them, the others one sample after the other."""

    name = "batched"

    def __init__(self, functions: Sequence[Function], forms: list[Any]) -> None:
        super().__init__(functions)
        self.forms = forms

    def many(self, samples: list[Any]) -> list[Any]:
        if len(samples) < 2:
            return super().many(samples)
        try:
            results = samples
            for function, form in zip(self.functions, self.forms):
                results = (
                    [function(sample) for sample in results]
                    if form is None
                    else form(function, results)
                )
            if len(results) == len(samples):
                return results
        except Exception:  # samples of other shapes: the error, if any, is the sample's
            pass
        return super().many(samples)


# ---- remembering -----------------------------------------------------------------------


class Cached(Sequential):
    """Results of the newest `most` inputs are remembered, by the inputs' contents."""

    name = "cached"

    def __init__(self, functions: Sequence[Function], most: int) -> None:
        super().__init__(functions)
        self.most, self.hits, self.misses = most, 0, 0
        self._results: OrderedDict[bytes, Any] = OrderedDict()

    @property
    def hit_rate(self) -> Optional[float]:
        asked = self.hits + self.misses
        return self.hits / asked if asked else None

    def one(self, sample: Any) -> Any:
        key = content_key(sample)
        if key is None:
            return super().one(sample)
        if key in self._results:
            self.hits += 1
            self._results.move_to_end(key)
            return fresh(self._results[key])
        self.misses += 1
        result = super().one(sample)
        self._results[key] = fresh(result)
        if len(self._results) > self.most:
            self._results.popitem(last=False)
        return result

    def many(self, samples: list[Any]) -> list[Any]:
        return [self.one(sample) for sample in samples]

    def forget(self) -> None:
        self._results.clear()
        self.hits = self.misses = 0


def content_key(sample: Any) -> Optional[bytes]:
    """Equal for equal contents, None for what cannot be told."""
    try:
        data = pickle.dumps(sample, protocol=5)
    except Exception:  # other people's objects
        return None
    return hashlib.blake2b(data, digest_size=16).digest()
