"""torch programs get phases and steps without a line changed.

`install` is called when the program has imported torch. Each part looks after one matter
and stands alone: one that fails is told in the report, the others go on.
"""

from __future__ import annotations

import sys
from typing import Any

from .. import _layer

_PARTS = ("phases", "ranges", "steps", "loader", "cuda", "ranks")


def install(torch: Any) -> None:
    from importlib import import_module

    # Functions keep their identity while their entry is ours (calls.c); the assertions of
    # a debug interpreter forbid that.
    if hasattr(sys, "gettotalrefcount"):
        _layer.problem("torch", RuntimeError("not under a debug build of Python"))
        return

    version = getattr(torch, "version", None)
    _layer.note(
        "torch", version=str(torch.__version__), cuda=getattr(version, "cuda", None)
    )

    for name in _PARTS:
        try:
            import_module(f"{__name__}.{name}").install(torch)
        except Exception as error:
            _layer.problem(f"torch: {name}", error)
