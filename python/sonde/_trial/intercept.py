"""Standing in front of a function of the program, however it is referred to.

What changes is the function's code, not the names it is known by: methods, names imported
elsewhere and references in lists go the same way. The new code is one call of a handler,
handler(original, args, kwargs).
"""

from __future__ import annotations

import gc
import os
import sys
import warnings
from types import CodeType, FunctionType
from typing import Any, Callable, Iterator, Optional

_GENERATOR = 0x20 | 0x80 | 0x100 | 0x200
_MARK = "sonde: the handler comes here"
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

Handler = Callable[[Callable[..., Any], Any, Any], Any]


def _template() -> CodeType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 'str' object is not callable: it will be
        made = eval(compile(f"lambda *args, **kwargs: {_MARK!r}(args, kwargs)", "", "eval"))
    code: CodeType = made.__code__
    return code


_TEMPLATE = _template()


def can_stand(code: CodeType) -> bool:
    """Not in front of generators and coroutines, whose call is not their work, nor of
    comprehensions, which are made anew each time."""
    return not code.co_flags & _GENERATOR and code.co_name not in (
        "<module>",
        "<listcomp>",
        "<setcomp>",
        "<dictcomp>",
        "<genexpr>",
    )


def is_users(code: CodeType) -> bool:
    file = code.co_filename
    return not (
        file.startswith("<")
        or file.startswith(_HERE)
        or "/site-packages/" in file
        or "/dist-packages/" in file
        or "/lib/python3" in file
    )


def functions_of(code: CodeType) -> list[FunctionType]:
    found = [
        f for f in gc.get_referrers(code) if type(f) is FunctionType and f.__code__ is code
    ]
    return found or [f for f in _all_functions() if f.__code__ is code]


def _all_functions() -> Iterator[FunctionType]:
    """What modules and their classes hold; for objects that gc.freeze() has put away."""
    for module in list(sys.modules.values()):
        for value in list(getattr(module, "__dict__", {}).values()):
            if type(value) is FunctionType:
                yield value
            elif isinstance(value, type):
                for inner in list(vars(value).values()):
                    inner = getattr(inner, "__func__", inner)
                    inner = getattr(inner, "fget", None) or inner
                    if type(inner) is FunctionType:
                        yield inner


def unwrapped(function: Any) -> Any:
    """The function behind decorators that say what they wrap."""
    for _ in range(16):
        inner = getattr(function, "__wrapped__", None)
        if inner is None:
            break
        function = inner
    return getattr(function, "__func__", function)


class Standing:
    """In front of all functions with this code, until leave()."""

    def __init__(self, code: CodeType, handler: Handler) -> None:
        self.code = code
        self.functions = functions_of(code) if can_stand(code) else []
        for f in self.functions:
            f.__code__ = _stub(code, f, handler)

    def __bool__(self) -> bool:
        return bool(self.functions)

    def leave(self) -> None:
        for f in self.functions:
            f.__code__ = self.code
        self.functions = []


def _stub(code: CodeType, f: FunctionType, handler: Handler) -> CodeType:
    original = FunctionType(
        code, f.__globals__, f.__name__, f.__defaults__, f.__closure__
    )
    original.__kwdefaults__ = f.__kwdefaults__

    def called(args: Any, kwargs: Any) -> Any:
        return handler(original, args, kwargs)

    consts = tuple(called if c == _MARK else c for c in _TEMPLATE.co_consts)
    stub = _TEMPLATE.replace(
        co_consts=consts,
        co_freevars=code.co_freevars,
        co_name=code.co_name,
        co_filename=code.co_filename,
        co_firstlineno=code.co_firstlineno,
    )
    _originals[id(stub)] = (stub, code)
    return stub


# Stubs, by address, and what they stand for.
_originals: dict[int, tuple[CodeType, CodeType]] = {}


# ---- places and stacks ----


def last_line(code: CodeType) -> int:
    lines = [line for _, _, line in code.co_lines() if line] if hasattr(code, "co_lines") else []
    return max(lines, default=code.co_firstlineno + 200)


def find(place: str) -> Optional[CodeType]:
    """The code at "weir_gates.py:27 in step"; None: no such function exists (yet)."""
    where, _, name = place.partition(" in ")
    file, _, line = where.rpartition(":")
    if not file or not line.isdigit():
        return None
    best: Optional[CodeType] = None
    for o in gc.get_objects():
        if type(o) is not FunctionType:
            continue
        code = o.__code__
        if os.path.basename(code.co_filename) != os.path.basename(file):
            continue
        if name and code.co_name != name.rpartition(".")[2]:
            continue
        if not code.co_firstlineno <= int(line) <= last_line(code):
            continue
        if best is None or code.co_firstlineno > best.co_firstlineno:
            best = code
    return best


def codes_of(frame: Any) -> list[CodeType]:
    """Of a stack, outermost first."""
    codes = []
    while frame is not None:
        code = frame.f_code
        codes.append(_originals[id(code)][1] if id(code) in _originals else code)
        frame = frame.f_back
    codes.reverse()
    return codes
