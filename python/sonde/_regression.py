"""sonde.check_regression: a block must not become slower than its baseline.

The baseline is a small JSON file to keep in git:

    {"training": {"wall_time_s": 1.93, "times_s": [1.91, 1.93, 1.97]}}

With eight or more times on both sides (`check.run(function, runs=8)`) the comparison is that of
`sonde check`: Hodges-Lehmann with the Mann-Whitney interval; it regressed when it is slower
beyond doubt and by more than the threshold. With fewer, the median against the baseline's
median: one run of a block is one sample, so leave the threshold generous then.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterator, Optional, Union

from . import _command
from ._operation import Operation

LEAST = 8  # samples on both sides that the statistics want

PathLike = Union[str, "os.PathLike[str]"]


class RegressionError(AssertionError):
    """The block became slower than the baseline allows."""


@dataclass(frozen=True)
class Comparison:
    """What a check found. Without a baseline, `regressed` is None: nothing to compare."""

    name: str
    time_s: float
    baseline_s: Optional[float]
    threshold: float
    runs: int
    gate: Optional[dict[str, Any]] = None
    """What `sonde check` says of the samples; None when there are too few."""

    @property
    def change(self) -> Optional[float]:
        """0.25 is 25 % slower."""
        if self.gate is not None and self.gate["ratio"] is not None:
            return float(self.gate["ratio"]) - 1
        return None if not self.baseline_s else self.time_s / self.baseline_s - 1

    @property
    def regressed(self) -> Optional[bool]:
        """None: nothing to compare with, or the samples do not tell."""
        if self.gate is not None:
            return {"fail": True, "pass": False}.get(self.gate["verdict"])
        return None if self.change is None else self.change > self.threshold

    @property
    def interval(self) -> Optional[tuple[float, float]]:
        """Of the change, by the gate's statistics."""
        if self.gate is None or self.gate["low"] is None:
            return None
        return float(self.gate["low"]) - 1, float(self.gate["high"]) - 1

    def __str__(self) -> str:
        if self.baseline_s is None:
            return f"{self.name}: {self.time_s:.4g} s, no baseline"
        return (
            f"{self.name}: {self.time_s:.4g} s against {self.baseline_s:.4g} s "
            f"({self.change:+.0%}{self._interval_words()}, allowed {self.threshold:+.0%})"
        )

    def _interval_words(self) -> str:
        if self.interval is None:
            return ""
        return f" [{self.interval[0]:+.0%}, {self.interval[1]:+.0%}]"


def read_baseline(path: PathLike) -> dict[str, Any]:
    """The baseline file; empty when there is none."""
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except json.JSONDecodeError as error:
        raise ValueError(
            f"baseline {os.fspath(path)!r} is not JSON: {error}"
        ) from error
    if not isinstance(data, dict):
        raise ValueError(f"baseline {os.fspath(path)!r} must be a JSON object")
    return data


def write_baseline(path: PathLike, name: str, times: list[float]) -> None:
    """Set one entry; the file is replaced whole. Of tests that run side by side one
    waits for the other, so that no entry is lost."""
    path = Path(path)
    with _alone_in(path.parent):
        _write_entry(path, name, times)


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Locks the folder itself: that leaves no lock file behind among the sources."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _write_entry(path: Path, name: str, times: list[float]) -> None:
    data = read_baseline(path)
    data[name] = {"wall_time_s": statistics.median(times), "times_s": times}
    fd, temporary = tempfile.mkstemp(dir=path.parent or Path("."), prefix=path.name)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        json.dump(data, file, indent=2, sort_keys=True)
        file.write("\n")
    os.chmod(temporary, 0o644)  # it belongs in git
    os.replace(temporary, path)


def _samples(entry: Any) -> list[float]:
    times = entry.get("times_s") if isinstance(entry, dict) else None
    if not isinstance(times, list):
        return []
    return [float(t) for t in times if isinstance(t, (int, float)) and t > 0]


def _gate(
    baseline: list[float], now: list[float], threshold: float
) -> Optional[dict[str, Any]]:
    """The judgement of `sonde check`, where there are samples and the command."""
    if min(len(baseline), len(now)) < LEAST or _command.find() is None:
        return None
    task = {"wall": {"baseline": baseline[-64:], "now": now[-64:], "threshold": threshold}}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(task, file)
        file.flush()
        words = ["check", "--json", "--inconclusive", "pass", "--samples", file.name]
        metric: dict[str, Any] = json.loads(_command.ask(*words))["metrics"][0]
        return metric


class RegressionCheck:
    """See check_regression()."""

    def __init__(
        self,
        name: str,
        threshold: float,
        baseline: PathLike,
        on_regression: Optional[Callable[[Comparison], Any]],
        update: str,
    ) -> None:
        if update not in ("missing", "always", "never"):
            raise ValueError("update must be 'missing', 'always' or 'never'")
        if isinstance(threshold, bool) or not isinstance(threshold, (int, float)):
            raise TypeError(
                f"threshold must be a number (0.2 is 20 % slower), not {threshold!r}"
            )
        if math.isnan(threshold):
            raise ValueError("threshold must be a number, not NaN")
        self.name, self.threshold, self.baseline = name, threshold, baseline
        self.on_regression, self.update = on_regression, update
        self.result: Optional[Comparison] = None

    def _stored(self) -> Optional[float]:
        entry = read_baseline(self.baseline).get(self.name)
        self._entry = entry
        if entry is None:
            return None
        value = entry.get("wall_time_s") if isinstance(entry, dict) else None
        if not isinstance(value, (int, float)) or value <= 0:
            raise ValueError(f"baseline of {self.name!r} has no positive wall_time_s")
        return float(value)

    def judge(self, times: list[float]) -> Comparison:
        """Compare, then update the baseline as asked."""
        median, stored = statistics.median(times), self._stored()
        gate = _gate(_samples(self._entry), times, self.threshold)
        self.result = Comparison(
            self.name, median, stored, self.threshold, len(times), gate
        )
        if self.update == "always" or (self.update == "missing" and stored is None):
            write_baseline(self.baseline, self.name, times)
        if self.result.regressed and self.update != "always":
            if self.on_regression is None:
                raise RegressionError(str(self.result))
            self.on_regression(self.result)
        return self.result

    def run(
        self, function: Callable[[], Any], runs: int = 5, warmup: int = 1
    ) -> Comparison:
        """Time the function several times instead of a block once."""
        times = []
        for i in range(warmup + runs):
            with Operation(self.name) as op:
                function()
            if i >= warmup:
                times.append(float(op.duration or 0.0))
        return self.judge(times)

    def __enter__(self) -> "RegressionCheck":
        self._operation = Operation(self.name).begin()
        return self

    def __exit__(self, kind: Any, *rest: Any) -> None:
        self._operation.end()
        if kind is None:  # a block that failed has no time worth comparing
            self.judge([float(self._operation.duration or 0.0)])


def check_regression(
    name: str,
    threshold: float = 0.2,
    baseline: PathLike = "sonde-baseline.json",
    on_regression: Optional[Callable[[Comparison], Any]] = None,
    update: str = "missing",
) -> RegressionCheck:
    """A block that must not take more than `threshold` longer than its baseline.

        with sonde.check_regression("training", threshold=0.2, baseline="perf.json"):
            train()

    Slower: `on_regression` is called, or RegressionError raised without one. A missing
    entry is written (`update="never"`: left missing, `"always"`: replaced).
    """
    return RegressionCheck(name, threshold, baseline, on_regression, update)
