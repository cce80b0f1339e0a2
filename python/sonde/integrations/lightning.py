"""PyTorch Lightning: a callback that profiles a fit, and a profiler for Trainer(profiler=).

    from sonde.integrations.lightning import SondeCallback

    trainer = Trainer(max_epochs=3, callbacks=[SondeCallback(name="baseline")])
    trainer.fit(model, loader)
    print(trainer.callbacks[0].report.verdict)

The callback starts a session (joins when `sonde run` or a session records already),
brings the torch layer, which sees phases, steps and samples; notes hyper-parameters and
the trainer's metrics; and hands the numbers of the report to the trainer's loggers. Where
the layer cannot be had it marks steps itself, and SondeProfiler gives the phases;
`Trainer(profiler=SondeProfiler())` does so in a session without the callback too.
"""

from __future__ import annotations

import importlib
import logging
import sys
from types import ModuleType
from typing import Any, Optional

from .. import _sonde
from .._config import Config
from .._pipeline import batch_size
from .._report import Report
from ._metrics import metrics_of
from ._owner import Owner, torch_layer
from .logger import Sink

_PACKAGES = ("lightning.pytorch", "pytorch_lightning")

# Phases of what Lightning's profilers are told of, by the last part of its name. Actions
# that are none of these (hooks of callbacks, mostly empty) get no zone.
_PHASES = {
    "train_dataloader_next": "data_loading",
    "val_next": "evaluation",
    "test_next": "evaluation",
    "validation_next": "evaluation",
    "val_dataloader_next": "evaluation",
    "test_dataloader_next": "evaluation",
    "batch_to_device": "transfer",
    "transfer_batch_to_device": "transfer",
    "training_step": "forward",
    "backward": "backward",
    "optimizer_zero_grad": "gradient",
    "configure_gradient_clipping": "gradient",
    "clip_gradients": "gradient",
    "optimizer_step": "optimizer",
    "validation_step": "evaluation",
    "test_step": "evaluation",
    "configure_model": "model_creation",
    "configure_sharded_model": "model_creation",
    "on_save_checkpoint": "checkpoint",
    "run_training_epoch": None,
}


def _package() -> ModuleType:
    """The Lightning the program uses: the one it has imported, else one that is there."""
    for name in _PACKAGES:
        found = sys.modules.get(name)
        if found is not None:
            return found
    for name in _PACKAGES:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise ImportError(
        "sonde.integrations.lightning needs Lightning: pip install lightning "
        "(or pytorch-lightning)"
    )


def _zone_of(action: str) -> Optional["_sonde.Zone"]:
    owner, _, last = action.rpartition(".")
    phase = _PHASES.get(last)
    if owner.startswith("[Callback]ModelCheckpoint"):
        last, phase = "ModelCheckpoint", "checkpoint"
    elif last not in _PHASES:
        return None
    # Where the torch layer sees phases, ours would count them a second time.
    return _sonde.zone(last, None if torch_layer() else phase, "lightning")


def _scalars(values: Any) -> dict[str, Any]:
    kinds = (str, int, float, bool)
    return {str(k): v for k, v in dict(values).items() if isinstance(v, kinds)}


def _make_profiler(package: ModuleType) -> Any:
    base: Any = importlib.import_module(f"{package.__name__}.profilers").Profiler

    class SondeProfiler(base):  # type: ignore[misc]
        """Zones of what the trainer does: `Trainer(profiler=SondeProfiler())`."""

        def __init__(self) -> None:
            super().__init__()
            self._zones: dict[str, Optional[_sonde.Zone]] = {}

        def start(self, action_name: str) -> None:
            try:
                zone = self._zones[action_name]
            except KeyError:
                zone = self._zones[action_name] = _zone_of(action_name)
            if zone is not None:
                _sonde.begin(zone)

        def stop(self, action_name: str) -> None:
            zone = self._zones.get(action_name)
            if zone is not None:
                _sonde.end(zone)

        def summary(self) -> str:
            return ""  # the report has it

    return SondeProfiler


def _make_callback(package: ModuleType, profiler: Any) -> Any:
    base: Any = package.Callback
    none: Any = importlib.import_module(
        f"{package.__name__}.profilers"
    ).PassThroughProfiler

    class SondeCallback(base):  # type: ignore[misc]
        """Profiles a fit; `report` is there when it has ended (None where a surrounding
        run goes on). `log=False` keeps the numbers from the trainer's loggers. Fields of
        sonde.Config and options of sonde.session may be given as keywords."""

        def __init__(
            self, config: Optional[Config] = None, *, log: bool = True, **options: Any
        ) -> None:
            super().__init__()
            self._owner = Owner(config, options)
            self._log = log
            self._steps = False
            self._installed = False
            self.report: Optional[Report] = None

        # ---- begin and end ----

        def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
            if stage != "fit":
                return
            self._owner.start()
            self._steps = not torch_layer()
            if self._steps and isinstance(trainer.profiler, none):
                trainer.profiler = profiler()
                self._installed = True

        def _finish(self, trainer: Any) -> None:
            if self._installed:
                trainer.profiler = none()
                self._installed = False
            report = self._owner.stop()
            if report is None:
                return
            self.report = report
            if self._log and trainer.is_global_zero:
                for logger in trainer.loggers:
                    Sink(logger).log(metrics_of(report), trainer.global_step)

        def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
            if stage == "fit":
                self._finish(trainer)

        def on_exception(self, trainer: Any, pl_module: Any, exception: Any) -> None:
            self._finish(trainer)

        # ---- in between ----

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            for name, value in _scalars(getattr(pl_module, "hparams", {})).items():
                _sonde.param(name, value)

        def on_train_batch_start(
            self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int, *more: Any
        ) -> None:
            if self._steps:
                _sonde.step(batch_size(batch) or 0)

        def on_train_end(self, trainer: Any, pl_module: Any) -> None:
            for name, value in trainer.callback_metrics.items():
                try:
                    _sonde.metric(str(name), float(value))
                except (TypeError, ValueError):
                    logging.getLogger("sonde").debug("metric %s is no number", name)

    return SondeCallback


def make(package: ModuleType) -> tuple[Any, Any]:
    """SondeCallback and SondeProfiler for one of the two packages, where a program has
    both: `make(pytorch_lightning)` or `make(lightning.pytorch)`."""
    profiler = _make_profiler(package)
    return _make_callback(package, profiler), profiler


SondeCallback, SondeProfiler = make(_package())
