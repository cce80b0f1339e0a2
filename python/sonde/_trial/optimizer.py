"""optimizer=K: its step is not done, and takes a K-th of its time."""

from __future__ import annotations

import gc
from typing import Any

from . import intercept, memo


def torch_came(course: Any, torch: Any) -> None:
    times = course.spec.get("optimizer")
    if times:
        _Optimizers(course, torch, float(times))


class _Optimizers:
    def __init__(self, course: Any, torch: Any, times: float) -> None:
        self.course, self.base, self.times = course, torch.optim.Optimizer, times
        self.part = course.part("optimizer")
        self.memos: dict[Any, memo.Memo] = {}
        course.looks.append(self.look)

    def look(self) -> None:
        if not self.course.past_start or self.part.settled or self.part.why:
            return
        if not self.memos:
            self.stand()
        self.part.settled = bool(self.memos) and any(m.ready for m in self.memos.values())

    def stand(self) -> None:
        for o in gc.get_objects():
            if self.base not in type(o).__mro__:
                continue
            if any(p.is_cuda for g in o.param_groups for p in g["params"]):
                self.part.why = "its work is on the card"
                return
            step = intercept.unwrapped(type(o).step)
            code = getattr(step, "__code__", None)
            if code is not None and code not in self.memos:
                kept = memo.Memo(1 / self.times, calls=8)
                if intercept.Standing(code, _handler(kept)):
                    self.memos[code] = kept
        if not self.memos:
            self.part.why = "no optimizer of torch was found"


def _handler(kept: memo.Memo) -> intercept.Handler:
    def step(original: Any, args: Any, kwargs: Any) -> Any:
        if len(args) > 1 or kwargs.get("closure") is not None:
            return original(*args, **kwargs)  # a closure computes gradients in it
        return kept.call(original, *args, **kwargs)

    return step
