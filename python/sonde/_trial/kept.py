"""keep: large blocks that the program frees are kept and used again.

That is done in front of the allocator, from the process's start on
(src/capture/interpose/heap_kept.c); here it is seen that it is.
"""

from __future__ import annotations

import ctypes
from typing import Any, Callable, Optional


def install(course: Any) -> None:
    if course.spec.get("keep"):
        _Kept(course)


def _counter() -> Optional[Callable[[], int]]:
    """Blocks that were handed out again so far."""
    count = getattr(ctypes.CDLL(None), "sonde_heap_again_", None)
    if count is not None:
        count.restype = ctypes.c_uint64
    return count


class _Kept:
    def __init__(self, course: Any) -> None:
        self.course, self.part = course, course.part("keep")
        self.count = _counter()
        if self.count is None:
            self.part.why = "its allocations do not come by Sonde"
        course.looks.append(self.look)

    def look(self) -> None:
        if self.count is not None and self.course.past_start and self.count():
            self.part.settled = True
