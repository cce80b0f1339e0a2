"""Samples of the process over time, for sessions without `sonde run`.

A small thread reads /proc and records counters. `sonde run` does this from outside, with
more of it; inside a run this module stays idle.
"""

from __future__ import annotations

import glob
import os
import threading
import time
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Optional

from . import _gpu, _sonde
from ._operation import resident_mb

MIB = 2.0**20
KEPT = 100_000  # points per series: a day at 1 s; then every second one is dropped


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _fields(text: bytes, separator: bytes = b":") -> dict[str, int]:
    """`name: number` lines as a dictionary."""
    found = {}
    for line in text.splitlines():
        name, _, rest = line.partition(separator)
        words = rest.split()
        if words and words[0].isdigit():
            found[name.decode().strip()] = int(words[0])
    return found


def _rate(read: Callable[[], Optional[float]]) -> Callable[[], Optional[float]]:
    """The change per second of a growing number."""
    last: list[tuple[float, float]] = []

    def rate() -> Optional[float]:
        now, value = time.monotonic(), read()
        before = last.pop() if last else None
        if value is None:
            return None
        last.append((now, value))
        if before is None or now <= before[0]:
            return None
        return (value - before[1]) / (now - before[0])

    return rate


def _cpu_seconds() -> float:
    t = os.times()
    return 100 * (t.user + t.system)


def _io(key: str) -> Callable[[], Optional[float]]:
    def read() -> Optional[float]:
        value = _fields(_read("/proc/self/io")).get(key)
        return None if value is None else value / MIB

    return read


def _network(column: int) -> Callable[[], Optional[float]]:
    def read() -> Optional[float]:
        rows = _read("/proc/net/dev").splitlines()[2:]
        return sum(int(row.split(b":")[1].split()[column]) for row in rows) / MIB

    return read


def _temperature() -> Optional[float]:
    zones = sorted(glob.glob("/sys/class/thermal/thermal_zone*/temp"))
    values = [int(text) for text in map(_read, zones) if text.strip().isdigit()]
    return max(values) / 1000 if values else None


def _system_memory() -> Optional[float]:
    info = _fields(_read("/proc/meminfo"))
    if "MemTotal" not in info or "MemAvailable" not in info:
        return None
    return 100 * (1 - info["MemAvailable"] / info["MemTotal"])


def _system_cpu() -> Callable[[], Optional[float]]:
    last: list[tuple[int, int]] = []

    def read() -> Optional[float]:
        words = _read("/proc/stat").split(b"\n", 1)[0].split()[1:9]
        if len(words) < 5:
            return None
        numbers = list(map(int, words))
        idle, total = numbers[3] + numbers[4], sum(numbers)
        before = last.pop() if last else None
        last.append((idle, total))
        if before is None or total == before[1]:
            return None
        return 100 * (1 - (idle - before[0]) / (total - before[1]))

    return read


def _gpu_memory() -> Optional[float]:
    memory = _gpu.memory()
    return None if memory is None else memory.allocated_mb


def _series(kind: str) -> dict[str, Callable[[], Optional[float]]]:
    """The counters of one kind of monitor, by name."""
    if kind == "memory":
        return {"memory_rss_mb": resident_mb}
    if kind == "cpu":
        return {"cpu_percent": _rate(_cpu_seconds)}
    if kind == "gpu":
        return {"gpu_memory_mb": _gpu_memory}
    if kind == "io":
        return {
            "io_read_mb_per_s": _rate(_io("read_bytes")),
            "io_write_mb_per_s": _rate(_io("write_bytes")),
        }
    if kind == "network":
        return {
            "net_received_mb_per_s": _rate(_network(0)),
            "net_sent_mb_per_s": _rate(_network(8)),
        }
    if kind == "temperature":
        return {"cpu_temperature_c": _temperature}
    if kind == "system":
        return {
            "system_cpu_percent": _system_cpu(),
            "system_memory_percent": _system_memory,
        }
    raise ValueError(f"no monitor {kind!r}")


class Monitor:
    """Samples over time: start(), stop(), `data`.

    monitor = sonde.Monitor(interval=0.5)
    monitor.start()
    train()
    monitor.stop()
    print(monitor.summary()["cpu_percent"]["max"])
    """

    def __init__(
        self,
        kinds: Iterable[str] = ("memory", "cpu", "gpu", "io", "system"),
        interval: float = 1.0,
        intervals: Optional[dict[str, float]] = None,
        on_sample: Optional[Callable[[str, float], Any]] = None,
    ) -> None:
        self.data: dict[str, list[tuple[float, float]]] = {}
        self._every = {k: (intervals or {}).get(k, interval) for k in kinds}
        self._series = {k: _series(k) for k in self._every}
        self._on_sample = on_sample
        self._stop = threading.Event()
        self._thread: Optional[threading.Thread] = None

    def _sample(self, kind: str) -> None:
        for name, read in self._series[kind].items():
            value = read()
            if value is None:  # missing is not zero
                continue
            points = self.data.setdefault(name, [])
            points.append((time.time(), value))
            if len(points) > KEPT:
                del points[::2]
            _sonde.counter(name, value)
            if self._on_sample is not None:
                self._on_sample(name, value)

    def _run(self) -> None:
        _sonde.thread_name("sonde-monitor")
        due = dict.fromkeys(self._every, 0.0)
        while due:
            now = time.monotonic()
            for kind in [k for k, when in due.items() if when <= now]:
                try:
                    self._sample(kind)
                except Exception:  # what cannot be read is not sampled again
                    del due[kind]
                    continue
                due[kind] = now + self._every[kind]
            if self._stop.wait(
                max(0.0, min(due.values(), default=0.0) - time.monotonic())
            ):
                return

    def start(self) -> None:
        """Begin; starting twice does nothing."""
        if self._thread is None and self._every:
            self._stop.clear()
            self._thread = threading.Thread(
                target=self._run, name="sonde-monitor", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """End, with a last sample of everything."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._stop.set()
        thread.join()
        for kind in self._every:
            try:
                self._sample(kind)
            except Exception:  # as above
                pass

    def current(self) -> dict[str, float]:
        """The newest value of each series."""
        return {name: points[-1][1] for name, points in self.data.items() if points}

    def summary(self) -> dict[str, dict[str, float]]:
        """Average, least and most of each series."""
        return {
            name: {
                "avg": sum(v for _, v in points) / len(points),
                "min": min(v for _, v in points),
                "max": max(v for _, v in points),
            }
            for name, points in self.data.items()
            if points
        }


# ---- At any time -----------------------------------------------------------------------


@dataclass(frozen=True)
class Stats:
    """Of current_stats(). None is what could not be read."""

    rss_mb: Optional[float]  # this process
    cpu_percent: Optional[float]  # this process, 100 = one core, since the last call
    system_cpu_percent: Optional[float]  # the machine, 0 to 100, since the last call
    memory_percent: Optional[float]  # the machine
    disk_io_percent: Optional[
        float
    ]  # time the busiest disk worked, since the last call
    gpu_memory_mb: Optional[float]  # torch's allocator
    gpu_memory_share: Optional[float]  # of the card, by anybody, 0 to 1


def _disk_busy() -> Callable[[], Optional[float]]:
    last: dict[str, int] = {}
    when = [0.0]

    def read() -> Optional[float]:
        now = time.monotonic()
        busy = {}
        for line in _read("/proc/diskstats").splitlines():
            words = line.split()
            if len(words) > 12 and not words[2].startswith((b"loop", b"ram")):
                busy[words[2].decode()] = int(words[12])  # ms with I/O under way
        shares = [
            (ms - last[name]) / 10 / (now - when[0])
            for name, ms in busy.items()
            if name in last and now > when[0]
        ]
        last.clear()
        last.update(busy)
        when[0] = now
        return min(100.0, max(shares)) if shares else None

    return read


_process_cpu, _machine_cpu, _disk = _rate(_cpu_seconds), _system_cpu(), _disk_busy()


def current_stats() -> Stats:
    """How the process and the machine are doing right now.

        stats = sonde.current_stats()
        if (stats.memory_percent or 0) > 85:
            print("memory is getting short")

    Percentages of time are since the last call; the first call has none.
    """
    return Stats(
        rss_mb=resident_mb(),
        cpu_percent=_process_cpu(),
        system_cpu_percent=_machine_cpu(),
        memory_percent=_system_memory(),
        disk_io_percent=_disk(),
        gpu_memory_mb=_gpu_memory(),
        gpu_memory_share=_gpu.memory_share(),
    )
