"""sonde.operation: a zone whose record can be read, inside the block and after it."""

from __future__ import annotations

import functools
import inspect
import numbers
import os
import resource
import sys
import threading
import time
from typing import Any, Callable, Dict, Iterator, Optional, TypeVar, Union, overload

from . import _gpu, _sonde
from ._profile import joined_tags, zone_of

F = TypeVar("F", bound=Callable[..., Any])

_MAY_AWAIT = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_PAGE_MB = resource.getpagesize() / 2.0**20

# Called with each operation that has ended; sonde.session fills it.
_listeners: list[Callable[["Operation"], None]] = []


def resident_mb() -> Optional[float]:
    """Resident memory of this process in MiB; None where /proc does not say."""
    try:
        with open("/proc/self/statm", "rb") as statm:
            return int(statm.read().split()[1]) * _PAGE_MB
    except (OSError, ValueError, IndexError):
        return None


class _AwaitingRecord:
    """The record of an operation in a coroutine, whose thread does other things too.

    Its time is a span; CPU time and memory are those of the process, since a thread's
    would be that of whatever the loop ran meanwhile."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.start_s: Optional[float] = None
        self.duration_s: Optional[float] = None
        self.cpu_s: Optional[float] = None
        self.process_cpu_s: Optional[float] = None
        self.mem_before_mb: Optional[float] = None
        self.mem_after_mb: Optional[float] = None
        self.mem_peak_mb: Optional[float] = None
        self.mem_peak_exact = False

    def begin(self, phase: Any, component: Optional[str], tags: dict[str, str]) -> None:
        more = {**tags, "category": "operation"}
        self._span = _sonde.Span(_sonde.zone(self.name, phase, component, **more))
        self.mem_before_mb = resident_mb()
        self._high = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self._cpu = time.process_time()
        self.start_s, self._start = time.time(), time.perf_counter()
        if "asyncio" in sys.modules:
            self._span.begin_in_task()
        else:
            self._span.begin()

    def end(self) -> None:
        if self.duration_s is not None:
            return
        self._span.end()
        self.duration_s = time.perf_counter() - self._start
        self.process_cpu_s = time.process_time() - self._cpu
        self.mem_after_mb = resident_mb()
        high = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self.mem_peak_exact = high > self._high
        seen = (self.mem_before_mb, self.mem_after_mb, _peaks.stop(self))
        known = [m for m in seen if m is not None]
        if self.mem_peak_exact:
            known.append(high / 1024)
        self.mem_peak_mb = max(known, default=None)

    def end_if_memory(self, threshold_mb: float) -> bool:
        self.end()
        if self.mem_peak_mb is None or self.mem_before_mb is None:
            return False
        return self.mem_peak_mb - self.mem_before_mb > threshold_mb

    def value(self, name: str, value: float) -> None:
        pass  # the thread's innermost zone is not ours

    def elapsed(self) -> Optional[float]:
        if self.start_s is None or self.duration_s is not None:
            return self.duration_s
        return time.perf_counter() - self._start


class _Peaks:
    """Resident memory looked at every few milliseconds while somebody wants its peak:
    the kernel's high-water mark says nothing below an earlier peak."""

    PERIOD_S = 0.005

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[int, float] = {}
        self._runs = False

    def start(self, owner: object) -> None:
        with self._lock:
            self._seen[id(owner)] = 0.0
            if self._runs:
                return
            self._runs = True
        threading.Thread(target=self._look, name="sonde-peaks", daemon=True).start()

    def stop(self, owner: object) -> Optional[float]:
        with self._lock:
            return self._seen.pop(id(owner), None)

    def _look(self) -> None:
        while True:
            now = resident_mb() or 0.0
            with self._lock:
                if not self._seen:
                    self._runs = False
                    return
                for owner, most in self._seen.items():
                    self._seen[owner] = max(most, now)
            time.sleep(self.PERIOD_S)


_peaks = _Peaks()
os.register_at_fork(after_in_child=_peaks.__init__)  # type: ignore[misc]


class Metrics(Dict[str, Any]):
    """Custom metrics of an operation. Numbers are recorded as they are set; anything else
    is kept in the record alone."""

    def __init__(self, record: Any) -> None:
        super().__init__()
        self._record = record

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        if isinstance(value, numbers.Real) and not isinstance(value, bool):
            self._record.value(str(name), float(value))

    def update(self, *args: Any, **kwargs: Any) -> None:
        for name, value in dict(*args, **kwargs).items():
            self[name] = value

    def setdefault(self, name: str, default: Any = None) -> Any:
        if name not in self:
            self[name] = default
        return self[name]

    def __ior__(self, other: Any) -> "Metrics":  # type: ignore[override,misc]
        self.update(other)
        return self


class Operation:
    """One run of a block: name, times, CPU, memory, custom metrics.

        with sonde.operation("training", component="evolution") as op:
            accuracy = train()
            op.metrics["accuracy"] = accuracy
            op.samples = 50_000
            print(op.elapsed)
        print(op.duration, op.cpu_s, op.mem_peak_mb, op.throughput)

    What was not measured is None: everything when switched off (`enabled=False`), the GPU
    fields without CUDA. Metrics are accepted in any case.
    """

    def __init__(
        self,
        name: str,
        phase: Optional[str] = None,
        component: Optional[str] = None,
        *,
        enabled: bool = True,
        **tags: Any,
    ) -> None:
        self.enabled = enabled
        self.phase, self.component = phase, component
        self.tags = {key: str(value) for key, value in tags.items()}
        self._record: Union[_sonde.Operation, _AwaitingRecord] = _sonde.Operation(name)
        self.metrics = Metrics(self._record)
        self.samples: Optional[int] = None
        self.gpu_mem_before_mb: Optional[float] = None
        self.gpu_mem_after_mb: Optional[float] = None
        self.gpu_mem_peak_mb: Optional[float] = None
        self.gpu_util_percent: Optional[float] = None  # at its end; not of short ones

    # ---- begin and end ----

    def begin(self, awaits: bool = False) -> "Operation":
        """Begin; `awaits` when others may run on this thread before end()."""
        if not self.enabled:
            return self
        if awaits:
            self._record = self.metrics._record = _AwaitingRecord(self.name)
        gpu = _gpu.memory()
        if gpu is not None:
            self.gpu_mem_before_mb, self._gpu_peak = gpu.allocated_mb, gpu.peak_mb
        if isinstance(self._record, _AwaitingRecord):
            self._record.begin(self.phase, self.component, self.tags)
        else:
            text = joined_tags(self.tags) or None
            self._record.begin(self.phase, self.component, text)
        return self

    def _close_gpu(self) -> None:
        gpu = _gpu.memory()
        if gpu is None or self.gpu_mem_before_mb is None:
            return
        self.gpu_mem_after_mb = gpu.allocated_mb
        rose = gpu.peak_mb > self._gpu_peak
        seen = max(self.gpu_mem_before_mb, gpu.allocated_mb)
        self.gpu_mem_peak_mb = gpu.peak_mb if rose else seen
        if (self.duration or 0.0) >= _gpu.PERIOD_S:
            self.gpu_util_percent = _gpu.utilization()

    def end(self) -> None:
        """End; further calls do nothing."""
        if not self.enabled or self.duration is not None or self.start_s is None:
            return
        self._record.end()
        self._close_gpu()
        for listener in _listeners:
            listener(self)

    def __enter__(self) -> "Operation":
        frame = sys._getframe(1)
        return self.begin(awaits=bool(frame.f_code.co_flags & _MAY_AWAIT))

    def __exit__(self, *exception: Any) -> None:
        self.end()

    async def __aenter__(self) -> "Operation":
        return self.begin(awaits=True)

    async def __aexit__(self, *exception: Any) -> None:
        self.end()

    # ---- the record ----

    @property
    def name(self) -> str:
        return self._record.name

    @property
    def start_s(self) -> Optional[float]:
        """Begin, seconds since the epoch."""
        return self._record.start_s

    start_time = start_s

    @property
    def end_time(self) -> Optional[float]:
        """End, seconds since the epoch; None while open."""
        start, duration = self.start_s, self.duration
        return None if start is None or duration is None else start + duration

    @property
    def elapsed(self) -> Optional[float]:
        """Seconds so far; the duration once it has ended."""
        return self._record.elapsed()

    @property
    def duration(self) -> Optional[float]:
        """Seconds; None while open."""
        return self._record.duration_s

    duration_s = duration

    @property
    def cpu_s(self) -> Optional[float]:
        """CPU seconds of the thread (None in coroutines: see process_cpu_s)."""
        return self._record.cpu_s

    @property
    def process_cpu_s(self) -> Optional[float]:
        return self._record.process_cpu_s

    @property
    def mem_before_mb(self) -> Optional[float]:
        return self._record.mem_before_mb

    @property
    def mem_after_mb(self) -> Optional[float]:
        return self._record.mem_after_mb

    @property
    def mem_peak_mb(self) -> Optional[float]:
        return self._record.mem_peak_mb

    @property
    def mem_peak_exact(self) -> bool:
        return self._record.mem_peak_exact

    @property
    def custom_metrics(self) -> Metrics:
        return self.metrics

    @property
    def throughput(self) -> Optional[float]:
        """Samples per second, when `samples` was set; of the time so far while open."""
        seconds = self.elapsed
        return self.samples / seconds if self.samples and seconds else None

    def metric(self, name: str, value: Any) -> None:
        """Attach a custom metric."""
        self.metrics[name] = value

    def to_dict(self) -> dict[str, Any]:
        """The record as in `operations[]` of report.json."""
        return dict(self._items())

    def _items(self) -> Iterator[tuple[str, Any]]:
        yield "name", self.name
        for key in (
            "phase component tags start_s duration_s cpu_s process_cpu_s mem_before_mb "
            "mem_after_mb mem_peak_mb gpu_mem_before_mb gpu_mem_after_mb gpu_mem_peak_mb "
            "gpu_util_percent"
        ).split():
            yield key, getattr(self, key)
        yield "samples_per_s", self.throughput
        yield "custom", dict(self.metrics)

    def __repr__(self) -> str:
        time_s = self.elapsed
        state = "off" if time_s is None else f"{time_s:.6f} s"
        return f"<sonde.Operation {self.name!r} {state}>"


def operation(
    name: str,
    phase: Optional[str] = None,
    component: Optional[str] = None,
    *,
    enabled: bool = True,
    **tags: Any,
) -> Operation:
    """A zone that also keeps CPU time and memory; see Operation."""
    return Operation(name, phase, component, enabled=enabled, **tags)


@overload
def profile_memory_intensive(function: F) -> F: ...
@overload
def profile_memory_intensive(
    *,
    threshold_mb: float = ...,
    on_exceeded: Optional[Callable[[Operation], None]] = ...,
    **more: Any,
) -> Callable[[F], F]: ...


def profile_memory_intensive(
    function: Any = None,
    *,
    threshold_mb: float = 1000.0,
    on_exceeded: Optional[Callable[[Operation], None]] = None,
    **more: Any,
) -> Any:
    """Report calls whose memory rose by more than `threshold_mb` above its start.

        @sonde.profile_memory_intensive(threshold_mb=1000)
        def train_large_model(): ...

    Other calls are zones like any other. `on_exceeded` gets the record of such a call.
    Coroutines and generators count from their begin to their end, with what others do
    meanwhile: memory is the process's.
    """

    def watch(f: Any) -> Any:
        if isinstance(f, (classmethod, staticmethod)):
            return type(f)(watch(f.__func__))
        return _watched(f, threshold_mb, on_exceeded, dict(more))

    return watch if function is None else watch(function)


def _watched(
    function: Any,
    threshold_mb: float,
    on_exceeded: Optional[Callable[[Operation], None]],
    more: dict[str, Any],
) -> Any:
    name = more.pop("name", None) or zone_of(function).name

    def begin() -> Operation:
        op = Operation(name, **more).begin(awaits=True)
        if op.enabled:
            _peaks.start(op._record)
        return op

    def finish(op: Operation) -> None:
        exceeded = op._record.end_if_memory(threshold_mb)
        op._close_gpu()
        if exceeded and on_exceeded is not None:
            on_exceeded(op)

    if inspect.isasyncgenfunction(function):

        @functools.wraps(function)
        async def watched_async_generator(*args: Any, **kwargs: Any) -> Any:
            op = begin()
            generator = function(*args, **kwargs)
            step = generator.asend(None)
            try:
                while True:
                    try:
                        item = await step
                    except StopAsyncIteration:
                        return
                    try:
                        step = generator.asend((yield item))
                    except GeneratorExit:
                        await generator.aclose()
                        raise
                    except BaseException as error:
                        step = generator.athrow(error)
            finally:
                finish(op)

        return watched_async_generator

    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def watched_generator(*args: Any, **kwargs: Any) -> Any:
            op = begin()
            try:
                return (yield from function(*args, **kwargs))
            finally:
                finish(op)

        return watched_generator

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def watched_coroutine(*args: Any, **kwargs: Any) -> Any:
            op = begin()
            try:
                return await function(*args, **kwargs)
            finally:
                finish(op)

        return watched_coroutine

    @functools.wraps(function)
    def watched(*args: Any, **kwargs: Any) -> Any:
        op = Operation(name, **more).begin()
        try:
            return function(*args, **kwargs)
        finally:
            finish(op)

    return watched
