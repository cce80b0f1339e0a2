"""MLflow: a report as parameters, metrics, tags and artefacts of a run."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any, Optional

from .._report import Report
from ._metrics import metrics_of, params_of

_LONGEST = 500  # characters of a parameter that every MLflow takes


def _key(name: str) -> str:
    """A name MLflow takes: letters, digits, _ - . / and blanks."""
    return re.sub(r"[^\w\-./ ]", "_", name, flags=re.ASCII)


def _run_id(mlflow: Any, run_id: Optional[str]) -> str:
    if run_id is not None:
        return run_id
    active = mlflow.active_run()
    if active is None:
        raise RuntimeError(
            "no MLflow run is active: use `with mlflow.start_run():`, or give run_id="
        )
    return str(active.info.run_id)


def log_report(
    report: Report,
    run_id: Optional[str] = None,
    *,
    prefix: str = "sonde/",
    step: Optional[int] = None,
    artifact_path: Optional[str] = "sonde",
) -> dict[str, float]:
    """Log a report to the active MLflow run (or `run_id`): parameters, metrics, the
    verdict and the findings as tags, report.json and operations.csv as artefacts (none
    with artifact_path=None). Gives the metrics.

        with mlflow.start_run():
            with sonde.session() as session:
                train()
            sonde.integrations.mlflow.log_report(session.report())
    """
    try:
        import mlflow
    except ImportError as error:
        raise ImportError("log_report() needs MLflow: pip install mlflow") from error
    client, run = mlflow.tracking.MlflowClient(), _run_id(mlflow, run_id)
    metrics = {_key(k): v for k, v in metrics_of(report, prefix).items()}
    known = client.get_run(run).data.params  # a parameter cannot be changed
    for name, value in params_of(report).items():
        if name.startswith("sonde."):
            client.set_tag(run, _key(name), value)
        elif _key(name) not in known:
            client.log_param(run, _key(name), value[:_LONGEST])
    for name, number in metrics.items():
        client.log_metric(run, name, number, step=step)
    for finding in report.bottlenecks:
        client.set_tag(run, _key(f"sonde.{finding['id']}"), finding["severity"])
    if artifact_path is not None:
        _log_files(client, run, report, artifact_path)
    return metrics


def _log_files(client: Any, run: str, report: Report, artifact_path: str) -> None:
    with tempfile.TemporaryDirectory(prefix="sonde-mlflow-") as folder:
        report.to_json(Path(folder) / "report.json")
        report.to_csv(Path(folder) / "operations.csv")
        client.log_artifacts(run, folder, artifact_path)
