"""foreach: the optimizer's step is done by torch, on the same parameters and gradients.

Of torch's own optimizers the groups get another setting (foreach=True, and fused=True where
this torch has it for the host). One of the program's own gives way to the nearest of
torch's: the class it is derived from, else AdamW, or SGD with or without momentum, by how
many tensors of a parameter's size it keeps for it. Its learning rate is so small that the
parameters stay what they are: nothing diverges, and the work is the same.

On the host torch's loop over parameters may be faster than its multi-tensor one, which
goes through memory once for each operator. So each way there is does some of the first
steps and is timed; the fastest stays, and the outcome names it.

Not on a card: a second set of moments takes its memory, and the host's clock does not tell
which way is faster there.
"""

from __future__ import annotations

import gc
import inspect
import time
from typing import Any, Callable, Optional

from . import intercept

_TRIES = 6  # of each way; the first prepares its state
_RATE = 1e-9
_SETTINGS = ("foreach", "fused")


def torch_came(course: Any, torch: Any) -> None:
    if course.spec.get("foreach"):
        _Optimizers(course, torch)


class _NoWay(Exception):
    """It cannot be done otherwise; the text says why."""


def moments(optimizer: Any) -> Optional[int]:
    """How many tensors it keeps for a parameter, each of its size; None: also others,
    and what they are for nobody knows."""
    most = 0
    for group in optimizer.param_groups:
        for p in group["params"]:
            state = optimizer.state.get(p)
            tensors = [t for t in (state or {}).values() if hasattr(t, "numel")]
            if any(t.numel() not in (1, p.numel()) for t in tensors):
                return None
            most = max(most, sum(t.shape == p.shape for t in tensors))
    return max(most, _beside(optimizer))


def _beside(optimizer: Any) -> int:
    """… in lists or dictionaries of its own rather than in its state."""
    shapes = [p.shape for group in optimizer.param_groups for p in group["params"]]
    count = 0
    for name, held in vars(optimizer).items():
        if name in ("state", "param_groups", "defaults"):
            continue
        values = list(held.values()) if isinstance(held, dict) else held
        if isinstance(values, (list, tuple)) and len(values) == len(shapes):
            count += all(getattr(v, "shape", None) == s for v, s in zip(values, shapes))
    return count


class _Way:
    """One of the ways to do a step, timed while there is a choice."""

    def __init__(self, name: str, step: Callable[[], Any]) -> None:
        self.name, self.step = name, step
        self.took: list[int] = []

    def timed(self) -> None:
        start = time.perf_counter_ns()
        self.step()
        self.took.append(time.perf_counter_ns() - start)

    @property
    def tried(self) -> bool:
        return len(self.took) >= _TRIES

    @property
    def best(self) -> int:
        return min(self.took[1:])


def _settings(optimizer: Any, original: Any) -> list[_Way]:
    """Of torch's own optimizers: the switches that are off."""
    groups = optimizer.param_groups
    if any(g.get(name) for g in groups for name in _SETTINGS):
        raise _NoWay("it updates all parameters at once already")

    def way(name: str) -> _Way:
        def step() -> Any:
            for g in groups:
                for other in _SETTINGS:
                    if other in g:
                        g[other] = other == name
            return original(optimizer)

        return _Way(f"{type(optimizer).__name__}({name}=True)", step)

    ways = [way(name) for name in _SETTINGS if all(name in g for g in groups)]
    if not ways:
        raise _NoWay(f"torch has no other way for {type(optimizer).__name__}")
    return ways


def _has_foreach(kind: Any) -> bool:
    return "foreach" in inspect.signature(kind.__init__).parameters


def _kind(optimizer: Any, torch: Any) -> tuple[Any, dict[str, Any]]:
    """The nearest of torch's, and what it is made with."""
    for kind in type(optimizer).__mro__:
        if kind.__module__.startswith("torch.optim.") and _has_foreach(kind):
            return kind, {}
    count = moments(optimizer)
    if count is None:
        raise _NoWay(
            "it keeps more than moments, and torch has none like it (--what-if optimizer=K)"
        )
    if count >= 2:
        return torch.optim.AdamW, {}
    return torch.optim.SGD, {"momentum": 0.9 if count else 0.0}


def _instead(optimizer: Any, torch: Any, ours: dict[int, Any]) -> list[_Way]:
    """For one of the program's own: torch's, one by one and all at once."""
    kind, more = _kind(optimizer, torch)
    params = [p for group in optimizer.param_groups for p in group["params"]]

    def way(name: str, foreach: bool) -> _Way:
        made = kind(params, lr=_RATE, foreach=foreach, **more)
        ours[id(made)] = made
        plain = intercept.unwrapped(kind.step)  # without a zone of its own

        def step() -> None:
            with torch.no_grad():
                plain(made)

        return _Way(f"torch.optim.{kind.__name__}{name}", step)

    return [way("()", False), way("(foreach=True)", True)]


class _Choice:
    """For one optimizer of the program. One way that is left is the one."""

    def __init__(self, ways: list[_Way]) -> None:
        self.ways = ways

    @property
    def made(self) -> bool:
        return len(self.ways) == 1

    def step(self) -> None:
        way = min(self.ways, key=lambda w: len(w.took))
        try:
            way.step() if self.made else way.timed()
        except Exception as error:
            self.ways.remove(way)
            if not self.ways:
                raise _NoWay(f"{way.name}: {error}") from error
            self.step()
        if not self.made and all(w.tried for w in self.ways):
            self.ways = [min(self.ways, key=lambda w: w.best)]


class _Optimizers:
    def __init__(self, course: Any, torch: Any) -> None:
        self.course, self.torch = course, torch
        self.part = course.part("optimizer")
        self.choices: dict[int, tuple[Any, _Choice]] = {}  # with whose it is, kept alive
        self.ours: dict[int, Any] = {}
        self.codes: set[Any] = set()
        course.looks.append(self.look)

    def look(self) -> None:
        if not self.course.past_start or self.part.settled or self.part.why:
            return
        if not self.codes:
            self.stand()
        choices = [choice for _, choice in self.choices.values()]
        if choices and all(c.made for c in choices):
            names = dict.fromkeys(c.ways[0].name for c in choices)
            self.part.told["instead"] = ", ".join(names)
            self.part.settled = True

    def stand(self) -> None:
        for o in gc.get_objects():
            if self.torch.optim.Optimizer not in type(o).__mro__:
                continue
            code = getattr(intercept.unwrapped(type(o).step), "__code__", None)
            if code is not None and code not in self.codes:
                if intercept.Standing(code, self.called):
                    self.codes.add(code)
        if not self.codes:
            self.part.why = "no optimizer of torch was found"

    def called(self, original: Any, args: Any, kwargs: Any) -> Any:
        # A closure computes gradients in it.
        given = len(args) > 1 or any(v is not None for v in kwargs.values())
        if given or self.part.why or id(args[0]) in self.ours:
            return original(*args, **kwargs)
        try:
            self.choice(args[0], original).step()
        except _NoWay as no:
            self.part.why = str(no)
        return None

    def choice(self, optimizer: Any, original: Any) -> _Choice:
        known = self.choices.get(id(optimizer))
        if known is None:
            params = [p for group in optimizer.param_groups for p in group["params"]]
            if any(p.is_cuda for p in params):
                raise _NoWay("its work is on the card")
            if "/torch/optim/" in original.__code__.co_filename:
                ways = _settings(optimizer, original)
            else:
                ways = _instead(optimizer, self.torch, self.ours)
            known = self.choices[id(optimizer)] = (optimizer, _Choice(ways))
        return known[1]
