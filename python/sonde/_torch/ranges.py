"""Ranges that a program or torch itself names become zones; no profiler is started.

torch's record_function is compiled by TorchScript from the source of its methods, so these
must stay functions with that source. Where calls of a function cannot be seen otherwise
(an interpreter the extension was not built for), their code is replaced by one that calls
a Range (a constant of it) and says it comes from the same lines.

torch names its own work in this way: each step of an optimizer, zero_grad. That is how
those are seen, whatever class the optimizer has.
"""

from __future__ import annotations

import threading
import types
from typing import Any, Callable, Optional

from .. import _layer, _sonde
from .phases import told_of, zone

_Told = Optional[Callable[[Any], None]]

# What torch calls it: the beginning of the name, phase, category, who is told.
_TORCHS: tuple[tuple[str, str, str, _Told], ...] = (
    ("Optimizer.step#", "optimizer", "optimizer_step", _sonde.optimizer_begins),
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
    space: dict[str, Any] = {}
    source = f"def f({', '.join(names)}): return (0.125)({', '.join(names)})"
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        exec(compile(source, "<sonde>", "exec"), space)
    code: types.CodeType = space["f"].__code__
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
    if _sonde.watch_range(function, target):
        return
    function.__code__ = _code_calling(target, function.__code__)


def _record_function(torch: Any) -> None:
    cls = torch.autograd.profiler.record_function
    known: dict[str, Any] = {}
    _take_over(cls.__enter__, known, False)
    _take_over(cls.__exit__, known, True)


# ---- NVTX ----

_depth = threading.local()


def _push(name: Any) -> None:
    """A range of NVTX begins: ranges of a thread nest."""
    text = name if isinstance(name, str) else "range"
    _sonde.begin(_sonde.zone(text, None, None, category="nvtx"))
    _depth.value = getattr(_depth, "value", 0) + 1


def _pop(_: tuple[Any, ...]) -> None:
    if getattr(_depth, "value", 0) > 0:
        _depth.value -= 1
        _sonde.end()


def _pushed(args: tuple[Any, ...]) -> None:
    _push(args[0] if args else None)


def _annotate_enters(args: tuple[Any, ...]) -> None:
    _push(args[0].init_args[0])


def _annotate_decorates(args: tuple[Any, ...]) -> None:
    """Without a tool of NVIDIA's attached nvtx leaves the function as it is; so do we."""
    name = args[0].init_args[0] or args[1].__name__
    _sonde.watch_function(args[1], _sonde.zone(name, None, None, category="nvtx"))


def _nvtx(torch: Any) -> None:
    told_of(torch.cuda.nvtx, "range_push", _pushed)
    told_of(torch.cuda.nvtx, "range_pop", _pop)


def _package_nvtx(nvtx: Any) -> None:
    told_of(nvtx.nvtx, "push_range", _pushed)
    told_of(nvtx.nvtx, "pop_range", _pop)
    told_of(nvtx.annotate, "__enter__", _annotate_enters)
    told_of(nvtx.annotate, "__exit__", _pop)
    told_of(nvtx.annotate, "__call__", _annotate_decorates)


def nvtx_came(nvtx: Any) -> None:
    _layer.guarded("nvtx", _package_nvtx, nvtx)


def install(torch: Any) -> None:
    _layer.guarded("torch: record_function", _record_function, torch)
    _layer.guarded("torch: nvtx", _nvtx, torch)
