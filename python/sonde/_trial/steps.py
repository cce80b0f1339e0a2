"""The course of a trial: when ablations are in effect, when to measure, when to end."""

from __future__ import annotations

import atexit
import json
import os
import sys
import time
from typing import Any, Callable

from .. import _layer, _sonde

_SETTLE_STEPS = 400  # ablations that found nothing to do by then never will
_SETTLE_PART = 0.6  # … or by that part of the time
_FIRST = 3  # steps before anybody looks: what is compiled and opened once is over


class Part:
    """One ablation's state, for the outcome."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.settled = False
        self.why = ""  # it cannot be applied
        self.told: dict[str, Any] = {}


class Course:
    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.scratch = str(spec["scratch"])
        self.outcome = str(spec["outcome"])
        self.wanted = max(int(spec.get("steps", 60)), 1)
        self.warmup = max(int(spec.get("warmup", 10)), 0)
        self.whole = bool(spec.get("whole", False))  # from the first step on
        self.least_s = float(spec.get("least_s", 0))  # … and at least so long
        self.last = int(spec.get("last", 0)) or 1 << 62  # the program has no more steps
        self.began = time.monotonic()
        self.deadline = self.began + float(spec.get("seconds", 120))
        self.step = 0  # that run, or ran last
        self.from_step = 0  # the first that is measured
        self.parts: list[Part] = []
        self.looks: list[Callable[[], None]] = []  # at each step until settled
        self.at_end: list[Callable[[], None]] = []
        self.ended = ""
        self.cpu_began = 0.0  # of this process, when measuring began
        self.measured_from = 0.0
        self.settled_at = 0
        self.pid = os.getpid()
        self.ours = False  # this process is the one that is measured

    # ---- ablations ----

    def part(self, name: str) -> Part:
        one = Part(name)
        self.parts.append(one)
        return one

    def failed(self, name: str, why: str) -> None:
        one = self.part(name)
        one.why = why

    @property
    def past_start(self) -> bool:
        return self.step >= _FIRST

    # ---- steps ----

    def torch_came(self, torch: Any) -> None:
        import multiprocessing

        if self.pid == os.getpid() and multiprocessing.parent_process() is None:
            _sonde.steps_told(self.begins)
            if not self.whole:
                _sonde.pause()

    def _claims(self) -> bool:
        """Of several interpreters the first that steps is the one that is measured."""
        try:
            path = os.path.join(self.scratch, "claimed")
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except OSError:
            _sonde.steps_told(None)
            return False
        self.ours = True
        atexit.register(self._at_exit)
        return True

    def begins(self, by: int = 1) -> None:
        """A step is about to begin; −1: the last one was none, its loader was at an end."""
        if os.getpid() != self.pid or not (self.ours or self._claims()):
            return
        self.step += by
        if by < 0:
            return
        if self.from_step:
            if self._is_enough():
                self.end("steps")
            elif time.monotonic() > self.deadline:
                self.end("time")
            return
        for look in list(self.looks):
            _layer.guarded("trial", look)
        self._settle()

    def _is_enough(self) -> bool:
        """Steps of a few milliseconds are over before the machine has had one of its
        moods: they are counted for a while, but never to the program's own end."""
        if self.step <= self.from_step + self.wanted + 1:
            return False
        long = time.monotonic() - self.measured_from >= self.least_s
        return long or self.step >= self.last

    def _settle(self) -> None:
        bad = [p for p in self.parts if p.why]
        if bad:
            self.end("failed")
        late = time.monotonic() > self.began + _SETTLE_PART * (self.deadline - self.began)
        open_ = [p for p in self.parts if not p.settled]
        if open_ and (late or self.step > _SETTLE_STEPS):
            for part in open_:
                part.why = "nothing of it was seen in the first steps"
            self.end("failed")
        if self.whole:
            if self.step > self.wanted:
                self.end("steps")
            elif time.monotonic() > self.deadline:
                self.end("time")
            return
        if open_ or not self.past_start:
            self.settled_at = 0
            return
        self.settled_at = self.settled_at or self.step
        if self.step >= self.settled_at + self.warmup:
            self.from_step = self.step
            self.cpu_began = time.process_time()
            self.measured_from = time.monotonic()
            _sonde.resume()

    # ---- the end ----

    def _write(self) -> None:
        rows = [
            {"name": p.name, "settled": p.settled, "why": p.why, **p.told}
            for p in self.parts
        ]
        text = json.dumps(
            {
                "ended": self.ended,
                "steps": self.step,
                "from_step": self.from_step,
                "cpu_s": time.process_time() - self.cpu_began,
                "parts": rows,
            }
        )
        part = f"{self.outcome}.{os.getpid()}"
        fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        os.write(fd, text.encode())
        os.close(fd)
        _REPLACE(part, self.outcome)

    def _at_exit(self) -> None:
        if os.getpid() == self.pid and not self.ended:
            self.ended = "program"
            _layer.guarded("trial", self._write)
            self._clear()

    def end(self, how: str) -> None:
        """Enough: nothing of the program's own end (a last evaluation, a file) happens."""
        self.ended = how
        _layer.guarded("trial", self._write)
        self._clear()
        _layer.guarded("trial", _end_children)
        os._exit(0)

    def _clear(self) -> None:
        for one in self.at_end:
            _layer.guarded("trial", one)


_REPLACE = os.replace  # before anybody stands in front of it


def _end_children() -> None:
    if "multiprocessing" in sys.modules:
        import multiprocessing

        for child in multiprocessing.active_children():
            child.kill()
