"""Any experiment logger: an object with log_metrics, log_metric, add_scalar or log."""

from __future__ import annotations

import inspect
import logging
from typing import Any, Callable, Mapping, Optional

from .. import _operation
from .._report import Report
from ._metrics import metrics_of

Write = Callable[[Mapping[str, float], Optional[int]], None]


def _takes_step(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(p.name == "step" or p.kind is p.VAR_KEYWORD for p in parameters)


def _whole(function: Callable[..., Any]) -> Write:
    """f(metrics, step=…): Lightning loggers, MLflow, Comet; W&B's run.log."""
    stepped = _takes_step(function)

    def write(metrics: Mapping[str, float], step: Optional[int]) -> None:
        if stepped and step is not None:
            function(dict(metrics), step=step)
        else:
            function(dict(metrics))

    return write


def _single(function: Callable[..., Any]) -> Write:
    """f(name, value, step): TensorBoard's add_scalar, log_metric of many."""

    def write(metrics: Mapping[str, float], step: Optional[int]) -> None:
        for name, value in metrics.items():
            if step is None:
                function(name, value)
            else:
                function(name, value, step)

    return write


def _lines(log: Any) -> Write:
    """A logging.Logger: one record, the numbers in its text and in `record.sonde`."""

    def write(metrics: Mapping[str, float], step: Optional[int]) -> None:
        text = " ".join(f"{name}={value:.6g}" for name, value in metrics.items())
        head = "sonde" if step is None else f"sonde step {step}"
        log.info("%s: %s", head, text, extra={"sonde": dict(metrics)})

    return write


def _writer(target: Any) -> Write:
    if isinstance(target, (logging.Logger, logging.LoggerAdapter)):
        return _lines(target)
    for name, form in (
        ("log_metrics", _whole),
        ("add_scalar", _single),
        ("log_metric", _single),
        ("log", _whole),
    ):
        function = getattr(target, name, None)
        if callable(function):
            return form(function)
    if callable(target):
        return _whole(target)
    raise TypeError(
        f"{type(target).__name__} is no logger: it has none of log_metrics, add_scalar, "
        "log_metric and log, and cannot be called"
    )


class Sink:
    """Hands Sonde's numbers to a logger you have.

        sink = sonde.integrations.Sink(tensorboard_writer)
        sink.report(session.report())          # the whole run

        with sonde.integrations.Sink(my_logger):
            with sonde.operation("evolve") as op:    # each operation, as it ends
                op.metrics["fitness"] = 0.9

    Taken, in this order: a logging.Logger; log_metrics(dict[, step]); add_scalar(name,
    value, step); log_metric(name, value[, step]); log(dict[, step]); any callable.
    A logger that fails is told of once and does not stop the program.
    """

    def __init__(self, target: Any, prefix: str = "sonde/") -> None:
        self._write = _writer(target)
        self._prefix = prefix
        self._failed = False
        self._step: Optional[int] = None

    def log(self, metrics: Mapping[str, float], step: Optional[int] = None) -> None:
        """Numbers by name, as they are."""
        try:
            self._write(metrics, step)
        except Exception:
            if not self._failed:
                logging.getLogger("sonde").exception("sonde: the logger failed")
            self._failed = True

    def report(self, report: Report, step: Optional[int] = None) -> None:
        """The numbers of a report (metrics_of)."""
        self.log(metrics_of(report, self._prefix), step)

    # ---- operations as they end ----

    def operation(self, op: "_operation.Operation") -> None:
        """One operation: its time, memory and custom metrics."""
        values = {
            "duration_s": op.duration,
            "cpu_s": op.cpu_s,
            "mem_peak_mb": op.mem_peak_mb,
            "gpu_mem_peak_mb": op.gpu_mem_peak_mb,
            "gpu_util_percent": op.gpu_util_percent,
            **op.metrics,
        }
        self.log(
            {
                f"{self._prefix}{op.name}/{name}": float(value)
                for name, value in values.items()
                if isinstance(value, (int, float)) and not isinstance(value, bool)
            },
            self._step,
        )

    def step(self, step: int) -> None:
        """The step that operations are logged with from now on."""
        self._step = step

    def attach(self) -> "Sink":
        """Hear of every sonde.operation that ends, until detach()."""
        _operation._listeners.append(self.operation)
        return self

    def detach(self) -> None:
        if self.operation in _operation._listeners:
            _operation._listeners.remove(self.operation)

    def __enter__(self) -> "Sink":
        return self.attach()

    def __exit__(self, *exception: Any) -> None:
        self.detach()
