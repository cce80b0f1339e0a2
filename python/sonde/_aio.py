"""asyncio: tells the recorder when a task is put aside and when it goes on.

Loaded by the extension when the first zone is entered in a coroutine, and only then does
it touch asyncio: `Handle._run`, through which every event loop written in Python takes
each step of a task. With loops that do not (uvloop), zones in coroutines still pair
rightly; their suspended time is then not known and counts as active.
"""

from __future__ import annotations

import asyncio
import asyncio.events
from typing import Any, Optional

from . import _sonde

_suspended, _resumed = _sonde.task_suspended, _sonde.task_resumed
_original = asyncio.events.Handle._run


def current_task() -> Optional["asyncio.Task[Any]"]:
    """The running task; None outside event loops."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def _run(self: asyncio.events.Handle) -> None:
    task = getattr(self._callback, "__self__", None)  # type: ignore[attr-defined]
    _resumed(task)
    try:
        return _original(self)
    finally:
        _suspended(task)


asyncio.events.Handle._run = _run  # type: ignore[method-assign]

# The step that runs now began before there was a hook: see that its end is noticed. A
# callback made now runs before the task can go on.
_task = current_task()
if _task is not None:
    asyncio.get_running_loop().call_soon(_suspended, _task)
del _task
