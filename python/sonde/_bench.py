"""sonde.bench and sonde.profile_code: measure a function."""

from __future__ import annotations

import cProfile
import functools
import math
import pstats
import statistics
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Optional, Sequence

from . import _gpu, _sonde
from ._operation import Operation, operation


@dataclass(frozen=True)
class BenchResult:
    """Times of many runs. Fields in seconds; mean, std, min, max, median, p95 also as
    properties in milliseconds."""

    runs: int
    warmup: int
    mean_s: float
    std_s: float
    min_s: float
    max_s: float
    median_s: float
    p95_s: float
    ci_low_s: float  # 95 % interval of the mean
    ci_high_s: float
    total_s: float
    outliers: int = 0
    note: str = ""

    @property
    def num_runs(self) -> int:
        return self.runs

    @property
    def mean(self) -> float:
        return self.mean_s * 1e3

    @property
    def std(self) -> float:
        return self.std_s * 1e3

    @property
    def min(self) -> float:
        return self.min_s * 1e3

    @property
    def max(self) -> float:
        return self.max_s * 1e3

    @property
    def median(self) -> float:
        return self.median_s * 1e3

    @property
    def p95(self) -> float:
        return self.p95_s * 1e3

    @classmethod
    def of(cls, times: Sequence[float], warmup: int = 0) -> "BenchResult":
        """Of times measured elsewhere, with the normal interval of the mean."""
        n, ordered = len(times), sorted(times)
        if n == 0:
            raise ValueError("no times")
        mean = statistics.fmean(ordered)
        std = statistics.stdev(ordered) if n > 1 else 0.0
        half = 1.96 * std / math.sqrt(n)
        p95 = ordered[min(n - 1, math.ceil(0.95 * n) - 1)]
        return cls(
            n,
            warmup,
            mean,
            std,
            ordered[0],
            ordered[-1],
            statistics.median(ordered),
            p95,
            mean - half,
            mean + half,
            sum(ordered),
        )

    def __str__(self) -> str:
        return f"{self.mean:.3f} ± {self.std:.3f} ms ({self.runs} runs)"


def synchronize() -> None:
    """Wait for the GPU, when torch uses one."""
    cuda = _gpu.cuda()
    if cuda is not None:
        cuda.synchronize()


def bench(
    function: Callable[..., Any],
    *args: Any,
    runs: int = 100,
    warmup: int = 10,
    **kwargs: Any,
) -> BenchResult:
    """Time `function(*args, **kwargs)`: `warmup` runs, then `runs` that count.

        stats = sonde.bench(model, batch, runs=50)
        print(f"{stats.mean:.2f} ± {stats.std:.2f} ms")

    With CUDA each run is synchronised, so that it ends when the GPU has ended. The
    interval of the mean is by bootstrap; `note` says when the numbers deserve doubt.
    """
    call = functools.partial(function, *args, **kwargs) if args or kwargs else function
    if _gpu.cuda() is not None:
        inner = call

        def call() -> None:
            inner()
            synchronize()

        synchronize()
    return BenchResult(**_sonde.bench(call, warmup=warmup, runs=runs))


def timed_runs(
    timed: Callable[[Any], Any],
    prepare: Callable[[], Any],
    runs: int,
    warmup: int,
) -> BenchResult:
    """Time `timed(x)` where `x = prepare()` is made outside the clock."""
    times = []
    for i in range(warmup + runs):
        prepared = prepare()
        synchronize()
        start = time.perf_counter()
        timed(prepared)
        synchronize()
        if i >= warmup:
            times.append(time.perf_counter() - start)
    return BenchResult.of(times, warmup)


@dataclass
class CodeProfile:
    """What profile_code() found. Function times are those of cProfile, which slows down
    many small calls: shares are better than seconds."""

    result: Any
    operation: Operation
    functions: list[dict[str, Any]] = field(default_factory=list)
    recommendations: list[str] = field(default_factory=list)

    @property
    def bottleneck_functions(self) -> list[dict[str, Any]]:
        """The functions that took at least a tenth of the time themselves."""
        return [f for f in self.functions if f["share"] >= 0.1]


def _functions(
    profiler: cProfile.Profile, depth: int, least_s: float
) -> list[dict[str, Any]]:
    stats = pstats.Stats(profiler).stats  # type: ignore[attr-defined]
    whole = sum(row[2] for row in stats.values()) or 1.0
    found = [
        {
            "name": name,
            "file": file,
            "line": line,
            "calls": calls,
            "self_s": self_s,
            "total_s": total_s,
            "share": self_s / whole,
        }
        for (file, line, name), (_, calls, self_s, total_s, _) in stats.items()
        if total_s >= least_s and "_lsprof" not in name
    ]
    found.sort(key=lambda f: -f["self_s"])
    return found[: depth * 10]


def queued_s() -> float:
    """Seconds this thread was ready to run but had no core; 0 where the kernel is silent."""
    try:
        with open("/proc/thread-self/schedstat", "rb") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def _advice(
    functions: list[dict[str, Any]], op: Operation, queued_s: float, least_mb: float
) -> list[str]:
    advice = []
    for f in functions[:3]:
        if f["share"] >= 0.1:
            where = f"{f['file']}:{f['line']}" if f["line"] else "built in"
            advice.append(
                f"{f['name']} ({where}) took {f['share']:.0%} of the time in "
                f"{f['calls']} calls: start there"
            )
    if op.cpu_s is not None and op.duration:
        waited = 1 - (op.cpu_s + queued_s) / op.duration
        if waited > 0.5:
            advice.append(
                f"it waited {waited:.0%} of the time (I/O, locks, sleep): overlap the "
                "waiting with work"
            )
    if op.mem_peak_mb is not None and op.mem_before_mb is not None:
        grown = op.mem_peak_mb - op.mem_before_mb
        if grown >= max(least_mb, 100.0):
            advice.append(f"memory rose by {grown:.0f} MiB: process the data in chunks")
    return advice


def profile_code(
    function: Callable[..., Any],
    *args: Any,
    config: Optional[Any] = None,
    **kwargs: Any,
) -> CodeProfile:
    """Call `function` once and say which functions took the time.

    found = sonde.profile_code(prepare, data)
    print(found.result, found.bottleneck_functions, found.recommendations)
    """
    from ._config import Config

    config = config or Config()
    profiler = cProfile.Profile()
    name = getattr(function, "__qualname__", repr(function))
    queued = queued_s()
    with operation(name, enabled=config.records) as op:
        if config.records:
            result = profiler.runcall(function, *args, **kwargs)
        else:
            result = function(*args, **kwargs)
    queued = queued_s() - queued
    if not config.records:
        return CodeProfile(result, op)
    functions = _functions(profiler, config.profile_depth, config.min_time_threshold)
    least_mb = config.min_memory_threshold / 2**20
    return CodeProfile(result, op, functions, _advice(functions, op, queued, least_mb))
