"""sonde.optimize.preprocessing: the way to run functions over samples that is fastest."""

from __future__ import annotations

import math
import time
from typing import Any, Callable, Optional, Sequence

from ._analyse import busy_s
from ._measure import Candidate, decide
from ._receipt import Receipt, Trial
from ._values import RandomState, fresh, same
from ._ways import (
    Batched,
    Cached,
    Processes,
    Sequential,
    Threads,
    batch_form,
    content_key,
)

ALLOWED = ("random", "stack")
LEAST_S = 0.005  # of one timed run: below, the clock and the machine are louder


class Pipeline:
    """Functions over samples, in the way that was proven fastest.

        pipeline(sample)            # one result
        pipeline([a, b, c])         # a list of results, in order
        pipeline.map(samples)       # the same for any iterable, also of lists
        pipeline.strategy, pipeline.receipt
        pipeline.close()            # ends its workers; also by `with`

    An exception of a function is the caller's. When a worker process dies WorkerDied is
    raised; the next call has new workers.
    """

    def __init__(self, way: Sequential, receipt: Receipt, samples: list[Any]) -> None:
        self._way, self.receipt = way, receipt
        self._lists = bool(samples) and all(isinstance(s, list) for s in samples)

    @property
    def strategy(self) -> str:
        return self._way.name

    @property
    def hit_rate(self) -> Optional[float]:
        """Of the cached strategy; None for others."""
        return getattr(self._way, "hit_rate", None)

    def __call__(self, data: Any) -> Any:
        return self.map(data) if self._is_many(data) else self._way.one(data)

    def _is_many(self, data: Any) -> bool:
        if not isinstance(data, list):
            return False
        return not self._lists or all(isinstance(item, list) for item in data)

    def map(self, samples: Any) -> list[Any]:
        return self._way.many(list(samples))

    def close(self) -> None:
        """End workers; calls go on, one sample after the other."""
        self._way.close()
        self._way = Sequential(self._way.functions)

    def __enter__(self) -> "Pipeline":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()


def preprocessing(
    functions: Sequence[Callable[[Any], Any]],
    samples: Sequence[Any],
    config: Optional[Any] = None,
    *,
    budget_s: float = 20.0,
    allow: tuple[str, ...] = (),
) -> Pipeline:
    """A pipeline of `functions` that gives the same results faster, if there is one.

        pipeline = sonde.optimize.preprocessing([clean, tokenize], texts[:200])
        results = pipeline(texts)
        print(pipeline.strategy, pipeline.receipt)

    On the given samples it measures: one after the other; `preprocessing_workers` threads
    (for waiting) and processes (for computing) with `parallel_preprocessing`; whole batches
    with `batch_preprocessing`, for functions that take a list of samples and give the list
    of the same results; remembered results with `enable_caching`, up to `cache_size`, when
    samples repeat. What gives other results is left out; what is proven to save
    `optimization_threshold` of the time is taken when `auto_optimize` is on.

    Functions whose results are random are run one after the other, as they are
    (`allow=("random",)`: in parallel too). Arrays are stacked into one for functions that
    give the same results so with `allow=("stack",)` only: that all given samples agree is
    no proof for a function that decides by its whole input.
    """
    from .._config import Config

    config, many = config or Config(), list(samples)
    if not many:
        raise ValueError("preprocessing() needs samples to measure with")
    for name in allow:
        if name not in ALLOWED:
            words = ", ".join(ALLOWED)
            raise ValueError(f"preprocessing(allow=) knows {words}, not {name!r}")
    plain = Sequential(functions)
    receipt = Receipt("preprocessing", chosen="sequential")
    if not config.optimize_preprocessing:
        receipt.keep("sequential", "optimize_preprocessing is off")
        return Pipeline(plain, receipt, many)
    began, state = time.monotonic(), RandomState()
    search = _Search(plain, many, config, allow, receipt, began + budget_s)
    try:
        way = search.run()
    finally:
        state.restore()
        receipt.seconds = time.monotonic() - began
    return Pipeline(way, receipt, many)


class _Search:
    """One call of preprocessing(): its ways, and what they must give."""

    def __init__(
        self,
        plain: Sequential,
        samples: list[Any],
        config: Any,
        allow: tuple[str, ...],
        receipt: Receipt,
        deadline: float,
    ) -> None:
        self.plain, self.samples, self.config = plain, samples, config
        self.allow, self.receipt, self.deadline = allow, receipt, deadline
        self.ways: dict[str, Sequential] = {}

    def run(self) -> Sequential:
        chosen: Optional[Sequential] = None
        try:
            chosen = self._run()
            return chosen or self.plain
        finally:
            for way in self.ways.values():
                if way is not chosen:
                    way.close()

    def _run(self) -> Optional[Sequential]:
        self._analyse()
        if self.random and "random" not in self.allow:
            self.receipt.keep("sequential", "results are random (allow=('random',))")
            return None
        candidates = [self._candidate(way) for way in self._proposals()]
        candidates = [c for c in candidates if c is not None]
        if not candidates:
            self.receipt.keep("sequential", "no other way gives the same results")
            return None
        threshold = self.config.optimization_threshold
        own = self._timed(self.plain, self.receipt.trials[0])
        best = decide(self.receipt, own, candidates, threshold, self.deadline)
        if best is None:
            return None
        if not self.config.auto_optimize:
            why = f"{best.trial.name} is faster, but auto_optimize is off"
            self.receipt.keep("sequential", why)
            return None
        self.receipt.accepted, self.receipt.chosen = True, best.trial.name
        gain = self.receipt.gain
        self.receipt.reason = f"saves at least {gain.low:.0%}" if gain else ""
        self.receipt.settings = best.trial.settings
        chosen = self.ways[best.trial.name]
        chosen.forget()
        return chosen

    def _analyse(self) -> None:
        """The results that every way must give, and what the functions are like."""
        before, given = RandomState(), fresh(self.samples)
        wall, cpu = time.perf_counter(), busy_s()
        self.results = self.plain.many(given)
        wall, cpu = time.perf_counter() - wall, busy_s() - cpu
        used = before.was_used()
        again = self.plain.many(fresh(self.samples))
        self.random = used or not same(self.results, again)
        self.in_place = not same(given, self.samples)
        self.wall_s = wall
        keys = [content_key(sample) for sample in self.samples]
        self.repeats = len(keys) - len(set(keys)) if None not in keys else 0
        self.receipt.trials.append(Trial("sequential"))
        self.receipt.analysis = {
            "samples": len(self.samples),
            "sample_s": wall / len(self.samples),
            "cpu_share": min(1.0, cpu / max(wall, 1e-9)),
            "random": self.random,
            "repeated": self.repeats,
            "changes_its_input": self.in_place,
        }
        if wall / len(self.samples) > 1e-3:  # the reference's threshold
            waits = cpu < wall / 2
            self.receipt.bottleneck(
                "preprocessing_bound",
                f"a sample takes {wall / len(self.samples) * 1e3:.1f} ms, most of it "
                + ("waiting" if waits else "computing"),
                "threads" if waits else "processes",
            )

    def _proposals(self) -> list[Sequential]:
        config, functions = self.config, self.plain.functions
        ways: list[Sequential] = []
        if config.parallel_preprocessing and config.preprocessing_workers > 1:
            ways.append(Threads(functions, config.preprocessing_workers))
            if not self.in_place:  # a worker process changes its own copy
                ways.append(Processes(functions, config.preprocessing_workers))
        if config.batch_preprocessing and len(self.samples) > 1 and not self.in_place:
            forms = self._batch_forms()
            if any(forms):
                ways.append(Batched(functions, forms))
        cacheable = self.repeats and not self.random and not self.in_place
        if config.enable_caching and config.cache_size and cacheable:
            ways.append(Cached(functions, config.cache_size))
        return ways

    def _batch_forms(self) -> list[Any]:
        """How each function takes a batch, if it does."""
        if self.random:
            return []
        forms, now, stack = [], fresh(self.samples), "stack" in self.allow
        for function in self.plain.functions:
            after = [function(fresh(sample)) for sample in now]
            forms.append(batch_form(function, now, after, stack))
            now = after
        return forms

    def _candidate(self, way: Sequential) -> Optional[Candidate]:
        self.ways[way.name] = way
        settings = {"workers": way.workers} if isinstance(way, Threads) else {}
        trial = Trial(way.name, {"strategy": way.name, **settings})
        self.receipt.trials.append(trial)
        try:
            given = fresh(self.samples)
            results = way.many(given)
        except Exception as error:  # cannot be pickled, is not thread-safe …
            trial.note = f"failed: {type(error).__name__}: {error}"
            return None
        if not self.random and not same(results, self.results):
            trial.note = "gives other results"
            return None
        return self._timed(way, trial)

    def _timed(self, way: Sequential, trial: Trial) -> Candidate:
        turns = max(1, math.ceil(LEAST_S / max(self.wall_s, 1e-6)))
        turns = min(turns, 100)

        def run() -> float:
            spent = 0.0
            for _ in range(turns):
                way.forget()
                given = fresh(self.samples) if self.in_place else self.samples
                start = time.perf_counter()
                way.many(given)
                spent += time.perf_counter() - start
            return spent / turns

        return Candidate(trial, run)
