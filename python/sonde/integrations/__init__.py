"""Sonde with what people train and log with; each part is optional.

    from sonde.integrations.lightning import SondeCallback      # pytorch-lightning, lightning
    from sonde.integrations.huggingface import SondeCallback    # transformers.Trainer
    from sonde.integrations import wandb, mlflow                # log_report(report)
    from sonde.integrations.torch import watch                  # torch in a session
    from sonde.integrations import Sink                         # any other logger

Importing `sonde` or `sonde.integrations` imports none of those packages; a part whose
package is missing says which one to install.
"""

from __future__ import annotations

import importlib
from typing import Any

from ._metrics import metrics_of, params_of
from .logger import Sink

_PARTS = ("huggingface", "lightning", "logger", "mlflow", "torch", "wandb")


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PARTS})


__all__ = ["Sink", "metrics_of", "params_of"]
