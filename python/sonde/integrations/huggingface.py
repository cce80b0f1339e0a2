"""Hugging Face transformers: a callback that profiles Trainer.train().

    from sonde.integrations.huggingface import SondeCallback

    trainer = Trainer(model, args, train_dataset=data, callbacks=[SondeCallback()])
    trainer.train()

The callback starts a session (joins when `sonde run` or a session records already) with
the torch layer, which sees loader, forward, backward and optimizer; notes the training
arguments as parameters and what the trainer logs as metrics; and hands the numbers of the
report to W&B and MLflow where the trainer reports to them.
"""

from __future__ import annotations

import logging
import sys
from typing import Any, Optional

from .. import _sonde
from .._config import Config
from .._report import Report
from ._owner import Owner, torch_layer

try:
    from transformers import TrainerCallback
except ImportError as error:
    raise ImportError(
        "sonde.integrations.huggingface needs transformers: pip install transformers"
    ) from error

_log = logging.getLogger("sonde")

# Training arguments that say how fast a run can be.
_PARAMS = (
    "learning_rate",
    "per_device_train_batch_size",
    "per_device_eval_batch_size",
    "gradient_accumulation_steps",
    "gradient_checkpointing",
    "num_train_epochs",
    "max_steps",
    "optim",
    "fp16",
    "bf16",
    "dataloader_num_workers",
    "dataloader_pin_memory",
    "seed",
)


class SondeCallback(TrainerCallback):  # type: ignore[misc,unused-ignore]
    """Profiles training; `report` is there when train() has ended (None where a
    surrounding run goes on). `log=False` keeps the numbers from W&B and MLflow. Fields of
    sonde.Config and options of sonde.session may be given as keywords."""

    def __init__(
        self, config: Optional[Config] = None, *, log: bool = True, **options: Any
    ) -> None:
        self._owner = Owner(config, options)
        self._log = log
        self._steps = False
        self._mlflow_run: Optional[str] = None
        self.report: Optional[Report] = None

    # ---- begin and end ----

    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._owner.start()
        self._steps = not torch_layer()
        # The trainer's own callback, which stands before us, ends it before we report.
        if "mlflow" in (args.report_to or ()) and "mlflow" in sys.modules:
            active = sys.modules["mlflow"].active_run()
            self._mlflow_run = active.info.run_id if active else None
        for name in _PARAMS:
            value = getattr(args, name, None)
            if value is not None:
                _sonde.param(name, getattr(value, "value", value))

    def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        report = self._owner.stop()
        if report is None:
            return
        self.report = report
        if self._log and state.is_world_process_zero:
            self._hand_on(report, set(args.report_to or ()))

    def _hand_on(self, report: Report, targets: set[str]) -> None:
        """To the trackers the trainer reports to; one that fails is a warning."""
        from . import mlflow, wandb

        try:
            if "wandb" in targets:
                wandb.log_report(report)
            if "mlflow" in targets:
                mlflow.log_report(report, self._mlflow_run)
        except Exception as error:
            _log.warning("sonde: a tracker did not take the report: %s", error)

    # ---- in between ----

    def _step(self, args: Any) -> None:
        if self._steps:  # one fetch of the loader is one step, also when accumulating
            _sonde.step(int(getattr(args, "train_batch_size", 0)))

    def on_step_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._step(args)

    def on_substep_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._step(args)

    def on_log(
        self, args: Any, state: Any, control: Any, logs: Any = None, **more: Any
    ) -> None:
        for name, value in (logs or {}).items():
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                _sonde.metric(str(name), float(value))
