"""Steps and epochs of a training program: what python/src/steps.c needs from Python.

Where a step begins and ends is decided in C, at every fetch of a batch.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from typing import Any

from .. import _layer, _sonde
from . import phases


def _epoch_ended(
    epoch: int, start: float, end: float, steps: int, samples: int
) -> None:
    _layer.note(
        "epoch", epoch=epoch, start=start, end=end, steps=steps, samples=samples
    )


def _optimizer_in_call() -> int:
    """Which optimizer steps: torch's wrapper of step() holds it, a frame or two up."""
    frame: Any = sys._getframe(1)
    for _ in range(4):
        if frame is None:
            break
        args = frame.f_locals.get("args")
        found = args[0] if isinstance(args, tuple) and args else None
        if not hasattr(found, "param_groups"):
            found = frame.f_locals.get("self")
        if hasattr(found, "param_groups"):
            return id(found)
        frame = frame.f_back
    return 0


def install(torch: Any) -> None:
    main = threading.main_thread().ident or 0
    _sonde.steps_start(main, phases.backward, _epoch_ended, _optimizer_in_call)
    phases.told_of(torch.optim.Optimizer, "__init__", _sonde.optimizer_made)
    atexit.register(_layer.guarded, "torch: steps", _sonde.steps_end)
    os.register_at_fork(after_in_child=_sonde.steps_forget)
