"""The name a thread has in Python becomes its name in reports."""

from __future__ import annotations

import threading

from . import _sonde


def name_thread() -> None:
    """Called by the extension when a thread records for the first time."""
    # Not current_thread(): it would make an object for threads Python does not know.
    thread = threading._active.get(threading.get_ident())  # type: ignore[attr-defined]
    if thread is not None and thread is not threading.main_thread():
        _sonde.thread_name(thread.name)
