"""Weights & Biases: a report as metrics, summary, table and artefact of a run."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any, Optional

from .._report import Report
from ._metrics import metrics_of

# One row per call path, the longest first; W&B draws no more than 10,000.
_ROWS = 1000
_COLUMNS = ("name", "path", "phase", "component", "count", "total_s", "self_s", "mean_ms", "p95_ms")  # fmt: skip


def _active(run: Any) -> Any:
    if run is not None:
        return run
    wandb = sys.modules.get("wandb")  # without it there can be no run
    active = getattr(wandb, "run", None)
    if active is None:
        raise RuntimeError(
            "no W&B run is active: call wandb.init() first, or give run="
        )
    return active


def _table(report: Report) -> Any:
    import wandb

    rows = sorted(report.operations, key=lambda o: -(o["total_s"] or 0.0))[:_ROWS]
    data = [
        [" > ".join(o["path"]) if c == "path" else o.get(c) for c in _COLUMNS]
        for o in rows
    ]
    return wandb.Table(columns=list(_COLUMNS), data=data, allow_mixed_types=True)


def _artifact(report: Report) -> Any:
    import wandb

    made = wandb.Artifact(
        f"sonde-{report.run['id']}", type="sonde-report", metadata=metrics_of(report)
    )
    with tempfile.TemporaryDirectory(prefix="sonde-wandb-") as folder:
        report.to_json(Path(folder) / "report.json")
        report.to_csv(Path(folder) / "operations.csv")
        for file in sorted(Path(folder).iterdir()):
            made.add_file(str(file), name=file.name)  # copies it
    return made


def log_report(
    report: Report,
    run: Optional[Any] = None,
    *,
    prefix: str = "sonde/",
    step: Optional[int] = None,
    table: bool = True,
    artifact: bool = True,
) -> dict[str, float]:
    """Log a report to the active W&B run (or `run`): its metrics as a point of the
    history and in the summary, the operations as a table, the files as an artefact.
    Gives the metrics.

        with sonde.session() as session:
            train()
        sonde.integrations.wandb.log_report(session.report())
    """
    active = _active(run)
    metrics = metrics_of(report, prefix)
    history: dict[str, Any] = dict(metrics)
    if table and report.operations:
        history[f"{prefix}operations"] = _table(report)
    active.log(history, step=step)
    active.summary.update(metrics)
    if report.verdict:
        active.summary[f"{prefix}verdict"] = report.verdict
    if artifact:
        active.log_artifact(_artifact(report))
    return metrics
