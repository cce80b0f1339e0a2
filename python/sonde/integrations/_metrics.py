"""A report as flat names and numbers, the form every experiment logger takes."""

from __future__ import annotations

import math
from typing import Any, Iterator, Optional

from .._report import Report

# Keys of `summary` that are numbers of their own.
_SUMMARY = (
    "optimizer_steps",
    "steps_per_s",
    "samples_per_s",
    "data_wait_share",
    "gpu_busy_share",
    "cpu_percent_avg",
    "peak_rss_mb",
    "overhead_percent",
    "overhead_mb",
    "lost",
)


def _number(value: Any) -> Optional[float]:
    """The value as a float; None when it is missing, which is not zero."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if math.isfinite(value) else None


def _pairs(report: Report) -> Iterator[tuple[str, Any]]:
    yield "duration_s", report.run.get("duration_s")
    for key in _SUMMARY:
        yield key, report.summary.get(key)
    for key, value in (report.summary.get("step_ms") or {}).items():
        yield ("steps" if key == "count" else f"step_ms/{key}"), value
    for phase in report.phases:
        yield f"phase/{phase['phase']}_s", phase["total_s"]
        yield f"phase/{phase['phase']}_share", phase["share"]
    energy = report.to_dict().get("energy") or {}
    yield "energy_joules", energy.get("joules")
    yield "co2e_g", energy.get("co2e_g")
    for key, value in report.metrics.items():
        yield f"metric/{key}", value.get("last") if isinstance(value, dict) else value
    for finding in report.bottlenecks:
        yield f"bottleneck/{finding['id']}", finding["score"]


def metrics_of(report: Report, prefix: str = "sonde/") -> dict[str, float]:
    """The numbers of a report by name: times by phase, step statistics, throughput,
    memory, energy, the program's own metrics, a score per bottleneck. What the run did
    not measure is left out.

        metrics_of(report)["sonde/phase/forward_share"]
    """
    found = ((name, _number(value)) for name, value in _pairs(report))
    return {prefix + name: value for name, value in found if value is not None}


def params_of(report: Report) -> dict[str, str]:
    """What the run was, as text: its parameters, name, id, verdict."""
    run = report.run
    params = {str(k): str(v) for k, v in (run.get("params") or {}).items()}
    for key in ("id", "name"):
        if run.get(key):
            params[f"sonde.{key}"] = str(run[key])
    if report.verdict:
        params["sonde.verdict"] = report.verdict
    return params
