"""gc=K: the garbage collector runs K times more seldom."""

from __future__ import annotations

import gc
import sys
from typing import Any

_collect = gc.collect


def install(course: Any) -> None:
    spec = course.spec.get("gc")
    if spec:
        _Collector(course, float(spec["times"]), bool(spec.get("freeze", False)))


class _Collector:
    def __init__(self, course: Any, times: float, freeze: bool) -> None:
        self.course, self.times, self.freeze = course, max(round(times), 1), freeze
        self.part = course.part("gc")
        self.calls = self.kept = 0
        self.part.settled = False
        gc.collect = self.collect
        course.looks.append(self.look)

    def collect(self, *args: Any, **kwargs: Any) -> int:
        if not self.course.past_start:
            return _collect(*args, **kwargs)
        self.calls += 1
        if self.calls % self.times:
            return 0
        self.kept += 1
        return _collect(*args, **kwargs)

    def look(self) -> None:
        if self.part.settled or self.course.step < 6:
            return
        for module in list(sys.modules.values()):  # from gc import collect
            names = getattr(module, "__dict__", {})
            for name, value in list(names.items()):
                if value is _collect and names is not gc.__dict__ and name != "_collect":
                    names[name] = self.collect
        if not self.calls:
            self.seldom()
        self.part.told["calls"] = self.calls
        self.part.settled = True

    def seldom(self) -> None:
        """It runs by itself: what is there by now stays, and it comes less often."""
        first, second, third = gc.get_threshold()
        if self.freeze:
            gc.freeze()
        gc.set_threshold(min(int(first * self.times), 2**31 - 1), second, third)
        gc.set_threshold = lambda *_: None
