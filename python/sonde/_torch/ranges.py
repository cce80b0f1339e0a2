"""Ranges that a program or torch itself names become zones; no profiler is started.

torch's record_function is compiled by TorchScript from the source of its methods, so these
must stay functions with that source. Their code is replaced by one that calls a Range (a
constant of it) and says it comes from the same lines.

torch names its own work in this way: each step of an optimizer, zero_grad. That is how
those are seen, whatever class the optimizer has.
"""

from __future__ import annotations

import types
from typing import Any, Callable, Optional

from .. import _layer, _sonde
from . import steps
from .phases import zone

_Told = Optional[Callable[[Any], None]]

# What torch calls it: the beginning of the name, phase, category, who is told.
_TORCHS: tuple[tuple[str, str, str, _Told], ...] = (
    ("Optimizer.step#", "optimizer", "optimizer_step", steps.optimizer_begins),
    ("Optimizer.zero_grad#", "optimizer", "zero_grad", None),
)
# Seen elsewhere, or of no interest to people.
_NOT = ("enumerate(DataLoader)#",)


def _describe(name: Any) -> Any:
    if not isinstance(name, str) or name.startswith(_NOT):
        return None
    for begin, phase, category, told in _TORCHS:
        if name.startswith(begin):
            return zone(name[len(begin) :], phase, category=category), told
    return _sonde.zone(name, None, None, category="record_function"), None


def _code_calling(target: Any, like: types.CodeType) -> types.CodeType:
    """Code with the arguments and the place of `like` that passes them to target."""
    names = like.co_varnames[: like.co_argcount]
    source = f"def f({', '.join(names)}): return '?'({', '.join(names)})"
    space: dict[str, Any] = {}
    exec(compile(source.replace("'?'", "TARGET"), "<sonde>", "exec"), space)
    code = space["f"].__code__
    # TARGET is a global there; here it must be a constant.
    source = f"def f({', '.join(names)}): return (0.125)({', '.join(names)})"
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        exec(compile(source, "<sonde>", "exec"), space)
    code = space["f"].__code__
    return code.replace(
        co_consts=tuple(target if c == 0.125 else c for c in code.co_consts),
        co_filename=like.co_filename,
        co_firstlineno=like.co_firstlineno,
        co_name=like.co_name,
    )


def _take_over(function: Any, known: dict[str, Any], leaves: bool) -> None:
    original = types.FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    target = _sonde.Range(original, _describe, known, leaves)
    function.__code__ = _code_calling(target, function.__code__)


def _record_function(torch: Any) -> None:
    cls = torch.autograd.profiler.record_function
    known: dict[str, Any] = {}
    _take_over(cls.__enter__, known, False)
    _take_over(cls.__exit__, known, True)


def install(torch: Any) -> None:
    _layer.guarded("torch: record_function", _record_function, torch)
