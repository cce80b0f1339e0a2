"""sonde.check_regression: a block must not become slower than its baseline.

The baseline is a small JSON file to keep in git:

    {"training": {"wall_time_s": 1.93, "times_s": [1.91, 1.93, 1.97]}}

The comparison is simple: the median time against the baseline's median and a threshold. One
run of a block is one sample, so leave the threshold generous or measure several runs
(`check.run(function, runs=5)`). `sonde check` is the gate with statistics.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Optional, Union

from ._operation import Operation

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

    @property
    def change(self) -> Optional[float]:
        """0.25 is 25 % slower."""
        return None if not self.baseline_s else self.time_s / self.baseline_s - 1

    @property
    def regressed(self) -> Optional[bool]:
        return None if self.change is None else self.change > self.threshold

    def __str__(self) -> str:
        if self.baseline_s is None:
            return f"{self.name}: {self.time_s:.4g} s, no baseline"
        return (
            f"{self.name}: {self.time_s:.4g} s against {self.baseline_s:.4g} s "
            f"({self.change:+.0%}, allowed {self.threshold:+.0%})"
        )


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
    """Set one entry; the file is replaced whole."""
    path = Path(path)
    data = read_baseline(path)
    data[name] = {"wall_time_s": statistics.median(times), "times_s": times}
    fd, temporary = tempfile.mkstemp(dir=path.parent or Path("."), prefix=path.name)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        json.dump(data, file, indent=2, sort_keys=True)
        file.write("\n")
    os.chmod(temporary, 0o644)  # it belongs in git
    os.replace(temporary, path)


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
        self.name, self.threshold, self.baseline = name, threshold, baseline
        self.on_regression, self.update = on_regression, update
        self.result: Optional[Comparison] = None

    def _stored(self) -> Optional[float]:
        entry = read_baseline(self.baseline).get(self.name)
        if entry is None:
            return None
        value = entry.get("wall_time_s") if isinstance(entry, dict) else None
        if not isinstance(value, (int, float)) or value <= 0:
            raise ValueError(f"baseline of {self.name!r} has no positive wall_time_s")
        return float(value)

    def judge(self, times: list[float]) -> Comparison:
        """Compare, then update the baseline as asked."""
        median, stored = statistics.median(times), self._stored()
        self.result = Comparison(self.name, median, stored, self.threshold, len(times))
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
