"""A trial: the program once more, for some steps, with an illness's work left out.

`sonde report RUN --measure` starts the program again under `sonde run` with SONDE_TRIAL
naming a small file: what to leave out, how many steps to measure (src/tune/plan.h writes
it). Nothing here runs without that variable. Each ablation is a file; one that cannot be
applied says why in the outcome, and the trial then measures nothing rather than something
else.

Order of a trial: ablations look at the first steps (real calls are timed and kept), then
all are in effect ("settled"), then warm-up, then recording goes on for the steps that are
measured, then the process ends. Nothing is recorded before that but zones of the start.
"""

from __future__ import annotations

import os
from typing import Any, Optional

from .. import _layer

_MOST_BYTES = 1 << 16

course: Any = None  # the Course of this process; None: no trial


def _read(path: str) -> dict[str, Any]:
    import json

    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    with os.fdopen(fd, "rb") as file:
        spec = json.loads(file.read(_MOST_BYTES))
    if not isinstance(spec, dict):
        raise ValueError("a trial's file is no object")
    return spec


def start() -> None:
    """Before anything of the program runs."""
    global course
    path: Optional[str] = os.environ.get("SONDE_TRIAL")
    if not path or course is not None:
        return
    from . import steps

    course = steps.Course(_read(path))
    for name in ("threads", "collector", "kept", "writes", "apart"):
        _install(name, "install", course)


def torch_comes(torch: Any) -> None:
    """torch was imported; Sonde's own hooks come after this, and stand outside of ours."""
    if course is None:
        return
    for name in (
        "threads",
        "writes",
        "precision",
        "loader",
        "optimizer",
        "foreach",
        "seldom",
        "rows",
    ):
        _install(name, "torch_came", course, torch)
    course.torch_came(torch)


def _install(name: str, function: str, *args: Any) -> None:
    from importlib import import_module

    try:
        getattr(import_module(f"{__name__}.{name}"), function)(*args)
    except Exception as error:
        _layer.problem(f"trial: {name}", error)
        course.failed(name, f"{type(error).__name__}: {error}")
