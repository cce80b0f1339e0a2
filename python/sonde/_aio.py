"""asyncio: tells the recorder when a task is put aside and when it goes on.

Loaded by the extension when the first zone around an await is entered, and only then does
it touch asyncio: `Handle._run`, through which every event loop written in Python takes
each step of a task. With loops that do not (uvloop), zones in coroutines still pair
rightly; their suspended time is then not known and counts as active.
"""

from __future__ import annotations

import asyncio
import asyncio.events
import threading
import weakref
from typing import Any, Optional

from . import _sonde

_suspended, _resumed = _sonde.task_suspended, _sonde.task_resumed
_original = asyncio.events.Handle._run


class _Running(threading.local):
    """What our hook runs on this thread."""

    owner: Any = None


_running = _Running()


def current_task() -> Optional["asyncio.Task[Any]"]:
    """The running task, in which a zone begins; None outside event loops."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return None
    if task is not None and task is not _running.owner:
        # Its step was not begun by our hook: it runs since before there was one, or it
        # was started eagerly by another task. See that its end is noticed all the same:
        # a callback made now runs before the task can go on. It must not keep the task.
        asyncio.get_running_loop().call_soon(_put_aside, weakref.ref(task))
    return task


def _put_aside(task: "weakref.ref[asyncio.Task[Any]]") -> None:
    _suspended(task())


def _run(self: asyncio.events.Handle) -> None:
    owner = getattr(self._callback, "__self__", None)  # type: ignore[attr-defined]
    outer, _running.owner = _running.owner, owner
    _resumed(owner)
    try:
        return _original(self)
    finally:
        _suspended(owner)
        _running.owner = outer


asyncio.events.Handle._run = _run  # type: ignore[method-assign]
