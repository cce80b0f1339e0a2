"""Done so many times more seldom: logging, checkpoints, evaluation, waits for results.

What is left out is a function of the program: the outermost on the stack of what is to be
rarer (a torch.save(), a model asked without gradients, a line that logs) that training is
not on the stack of. What it gave last is given again while it is left out. Where training
itself is all there is on the stack, logging's own functions are left out; of the rest that
is said.

An occasion is a step in which it happens. A function that is called in every step and acts
in every fifth is known after two: those steps alone count.
"""

from __future__ import annotations

import builtins
import logging
import os
import sys
import time
from types import CodeType
from typing import Any, Optional

from . import intercept

_now = time.perf_counter_ns
_LEARN = 4  # steps
_MOSTLY = 0.5  # of a function's time that must be what is left out
_NONE_BY = 40  # steps: what has not come by then is not in the trial's few steps either
_LAST = object()  # what it gave last


def _no() -> bool:
    return False


def torch_came(course: Any, torch: Any) -> None:
    rows = course.spec.get("seldom") or []
    memos = course.spec.get("memo") or []
    if not rows and not memos:
        return
    training = _Training(course, torch)
    for row in rows:
        kind = {"checkpoint": _Saves, "evaluation": _Evaluations}.get(row["what"], _Lines)
        kind(course, torch, training, row)
    for row in memos:
        _Prepared(course, training, row)


class _Training:
    """Codes on the stacks of what trains: backward, forward with gradients, steps."""

    def __init__(self, course: Any, torch: Any) -> None:
        self.course, self.torch = course, torch
        self.codes: set[CodeType] = set()
        self.enough = False
        self.asked: list[Any] = []  # told of models that are asked without gradients
        self.backward: Optional[intercept.Standing] = None
        module = torch.nn.modules.module
        self.hook = module.register_module_forward_pre_hook(self.forward)
        course.looks.append(self.look)

    def add(self, frame: Any) -> None:
        if not self.enough:
            self.codes.update(c for c in intercept.codes_of(frame))

    def look(self) -> None:
        self.add(sys._getframe(1))
        if self.backward is None:
            code = self.torch.autograd.backward.__code__
            self.backward = intercept.Standing(code, self.backwards)
        if self.course.step >= 8 and not self.enough:
            self.enough = True
            self.backward.leave()
        if self.enough and self.hook is not None and not self.asked:
            self.hook.remove()
            self.hook = None

    def backwards(self, original: Any, args: Any, kwargs: Any) -> Any:
        self.add(sys._getframe(1))
        return original(*args, **kwargs)

    def forward(self, module: Any, _: Any) -> None:
        if self.torch.is_grad_enabled() and module.training:
            self.add(sys._getframe(1))
        elif not self.torch.is_grad_enabled():
            for told in list(self.asked):
                told(sys._getframe(1))

    def chain(self, frame: Any) -> list[CodeType]:
        """Functions of the program on a stack that are not training's, outermost first."""
        return [
            c
            for c in intercept.codes_of(frame)
            if c not in self.codes and intercept.is_users(c) and intercept.can_stand(c)
        ]

    def owner(self, frame: Any) -> str:
        names = [
            c.co_name for c in intercept.codes_of(frame) if intercept.is_users(c)
        ]
        return f"{names[-1]}()" if names else "the loop"


class _Rare:
    """A function, left out but for every K-th occasion."""

    def __init__(self, course: Any, training: _Training, row: dict[str, Any]) -> None:
        self.course, self.training = course, training
        self.times = max(float(row["times"]), 1)
        self.part = course.part(str(row["what"]))
        self.standing: Optional[intercept.Standing] = None
        self.events = 0
        self.early: set[int] = set()  # steps of occasions before anybody stood there, …
        self.had: list[int] = []  # … and while learning
        self.without = 0
        self.always = False
        self.period = 0
        self.step = -1
        self.occasions = self.kept = 0
        self.due = 0.0
        self.keep = False
        self.last: Any = None

    def none_came(self) -> None:
        """Evaluation every thousand steps: steps without it are what is measured."""
        if not self.events and not self.course.whole and self.course.step >= _NONE_BY:
            self.part.settled = True

    def event(self, frame: Any) -> None:
        """It happens, with this stack."""
        self.events += 1
        if self.standing or self.part.why:
            return
        self.early.add(self.course.step)
        self.tell()
        if not self.training.enough:
            return
        chain = self.training.chain(frame)
        for code in chain:
            standing = intercept.Standing(code, self.called)
            if standing:
                self.standing = standing
                self.part.told["function"] = code.co_name
                return
        self.stuck(frame)

    def stuck(self, frame: Any) -> None:
        self.part.why = f"it is part of {self.training.owner(frame)}"

    # ---- in front of the function ----

    def called(self, original: Any, args: Any, kwargs: Any) -> Any:
        step = self.course.step
        if self.always or (self.period and (step - self.had[-1]) % self.period == 0):
            return self.decide(step, original, args, kwargs)
        if self.period:
            return original(*args, **kwargs)
        before = self.events
        result = original(*args, **kwargs)
        self.learn(step, self.events > before, result)
        return result

    def learn(self, step: int, had: bool, result: Any) -> None:
        if not had:
            self.without += 1
            return
        self.last = result
        if not self.had or self.had[-1] != step:
            self.had.append(step)
        if not self.without:
            self.always = True
        elif len(self.had) >= 2:
            self.period = self.had[-1] - self.had[-2]
        self.part.settled = self.always or self.period > 0
        self.tell()

    def decide(
        self, step: int, original: Any, args: Any, kwargs: Any, otherwise: Any = _LAST
    ) -> Any:
        if step != self.step:
            self.step = step
            self.occasions += 1
            self.due += 1 / self.times
            self.keep = self.due >= 1 - 1e-9
            if self.keep:
                self.due -= 1
                self.kept += 1
            self.tell()
        if self.keep:
            self.last = original(*args, **kwargs)
            return self.last
        return self.last if otherwise is _LAST else otherwise

    def tell(self) -> None:
        real = len(self.early.union(self.had))
        self.part.told.update(
            seen=self.occasions + real,
            kept=self.kept + real,
            times=self.times,
        )


class _Saves(_Rare):
    """torch.save(), and what is around it."""

    def __init__(self, course: Any, torch: Any, training: _Training, row: Any) -> None:
        super().__init__(course, training, row)
        self.gated = False
        course.on_save = self.saved
        course.looks.append(self.none_came)

    def saved(self) -> bool:
        """Whether this one is to be left out."""
        if not self.gated:
            self.event(sys._getframe(2))
            return False
        return bool(self.decide(self.course.step, _no, (), {}, True))

    def stuck(self, frame: Any) -> None:
        """The loop saves by itself: the save alone is left out."""
        self.gated = True
        self.part.told["function"] = "torch.save()"
        self.part.settled = True


class _Evaluations(_Rare):
    """A model asked without gradients."""

    def __init__(self, course: Any, torch: Any, training: _Training, row: Any) -> None:
        super().__init__(course, training, row)
        training.asked.append(self.asked)
        course.looks.append(self.none_came)

    def asked(self, frame: Any) -> None:
        self.event(frame)
        if self.part.settled or self.part.why:
            self.training.asked[:] = [a for a in self.training.asked if a != self.asked]


class _Lines(_Rare):
    """What a line of the program does: logging, asking for results."""

    def __init__(self, course: Any, torch: Any, training: _Training, row: Any) -> None:
        super().__init__(course, training, row)
        self.place = str(row.get("place", ""))
        self.what = str(row["what"])
        self.timed: dict[CodeType, intercept.Standing] = {}
        self.spent: dict[CodeType, int] = {}
        self.calls: dict[CodeType, int] = {}
        self.order: list[CodeType] = []
        self.inner: Optional[CodeType] = None
        self.from_step = 0
        self.watched = self.gated = False
        course.looks.append(self.look)

    def look(self) -> None:
        if self.part.settled or self.part.why or not self.training.enough:
            return
        if self.inner is None:
            self.find()
        elif self.spent.get(self.inner) and self.course.step >= self.from_step + _LEARN:
            self.choose()

    def find(self) -> None:
        if self.watched:
            return
        code = intercept.find(self.place) if self.place else None
        if code is None or code in self.training.codes or not intercept.can_stand(code):
            self.watch(code)
            return
        self.inner = code
        self.from_step = self.course.step
        self.time(code)

    def time(self, code: CodeType) -> None:
        def timed(original: Any, args: Any, kwargs: Any) -> Any:
            if code is self.inner and not self.order:
                self.order = self.training.chain(sys._getframe(3))
                for outer in self.order:
                    self.time(outer)
                if code not in self.order:
                    self.order.append(code)
            start = _now()
            try:
                return original(*args, **kwargs)
            finally:
                self.spent[code] = self.spent.get(code, 0) + _now() - start
                self.calls[code] = self.calls.get(code, 0) + 1

        if code not in self.timed:
            self.timed[code] = intercept.Standing(code, timed)

    def choose(self) -> None:
        for standing in self.timed.values():
            standing.leave()
        assert self.inner is not None
        least = self.spent[self.inner] * 1.0
        for code in self.order:
            if self.spent.get(code, 0) * _MOSTLY <= least:
                self.standing = intercept.Standing(code, self.called)
                if self.standing:
                    self.always = True
                    self.part.settled = True
                    self.part.told["function"] = code.co_name
                    return
        self.part.why = f"{self.inner.co_name}() cannot be stood in front of"

    # ---- no function is named, or it is the loop itself ----

    def watch(self, code: Optional[CodeType]) -> None:
        """Who calls what logs? Where that is the loop, the calls are left out."""
        if self.what != "logging":
            name = f"{code.co_name}()" if code is not None else "the loop"
            self.part.why = f"it is part of {name}"
            return
        self.watched = True
        for owner, name in ((builtins, "print"), (logging.Logger, "handle"), (os, "fsync")):
            self.replace(owner, name)

    def replace(self, owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def rare(*args: Any, **kwargs: Any) -> Any:
            if self.gated:
                return self.decide(self.course.step, real, args, kwargs)
            self.event(sys._getframe(1))
            return real(*args, **kwargs)

        setattr(owner, name, rare)

    def stuck(self, frame: Any) -> None:
        self.gated = True
        self.part.told["function"] = "print(), logging and os.fsync()"
        self.part.settled = True


class _Prepared:
    """A function that loads or prepares data in the loop: its results are kept."""

    def __init__(self, course: Any, training: _Training, row: dict[str, Any]) -> None:
        from . import memo

        self.course, self.training = course, training
        self.place = str(row["place"])
        self.part = course.part(str(row.get("what", "prepared")))
        self.kept = memo.Memo(
            float(row.get("left", 0)),
            1e3 * float(row.get("least_us", 0)),
            calls=24,
            on_ready=self.ready,
        )
        self.standing: Optional[intercept.Standing] = None
        self.probe: Optional[intercept.Standing] = None
        course.looks.append(self.look)

    def ready(self) -> None:
        self.part.settled = True

    def look(self) -> None:
        if self.standing or self.probe or self.part.why or not self.training.enough:
            return
        code = intercept.find(self.place)
        if code is None:
            self.part.why = f"there is no function at {self.place}"
        elif code in self.training.codes:
            self.part.why = f"it is part of {code.co_name}()"
        else:
            self.probe = intercept.Standing(code, self.seen)
            if not self.probe:
                self.part.why = f"{code.co_name}() cannot be stood in front of"

    def seen(self, original: Any, args: Any, kwargs: Any) -> Any:
        """Once: who calls it?"""
        chain = self.training.chain(sys._getframe(3))
        probe, self.probe = self.probe, None
        assert probe is not None
        probe.leave()
        result = original(*args, **kwargs)
        for code in [*chain, probe.code]:
            self.standing = intercept.Standing(code, self.called)
            if self.standing:
                self.part.told["function"] = code.co_name
                break
        return result

    def called(self, original: Any, args: Any, kwargs: Any) -> Any:
        return self.kept.call(original, *args, **kwargs)
