"""Whether the body of a `with` statement in a coroutine can be suspended.

A zone around an await must be a span. A zone around plain code in a coroutine need not be:
nothing else runs on the thread before it ends, so it can nest like any other and count for
its phase. Which of the two it is can be read from the compiled code, once per `with`.

Unknown byte code (a newer Python, a call of __enter__ by hand) counts as awaiting.
"""

from __future__ import annotations

import dis
import sys
from types import CodeType, FrameType
from typing import Any

_SUSPENDS = {"YIELD_VALUE", "YIELD_FROM", "SEND"}
_known: dict[tuple[CodeType, int], bool] = {}
KNOWN = 10_000  # more places than this are looked up again


def _suspends_within(code: CodeType, ranges: list[tuple[int, int]]) -> bool:
    return any(
        instruction.opname in _SUSPENDS
        and any(low <= instruction.offset < high for low, high in ranges)
        for instruction in dis.get_instructions(code)
    )


def _at(code: CodeType, offset: int) -> Any:
    return next((i for i in dis.get_instructions(code) if i.offset == offset), None)


def _before_311(code: CodeType, offset: int) -> bool:
    """The body lies between SETUP_WITH and its handler."""
    setup = _at(code, offset)
    if setup is None or setup.opname != "SETUP_WITH":
        return True
    return _suspends_within(code, [(offset, setup.argval)])


def _since_311(code: CodeType, offset: int) -> bool:
    """The body is what the exception table protects with the handler of the `with`, and
    with the handlers of blocks inside it, which themselves are protected by it."""
    before = _at(code, offset)
    if before is None or before.opname != "BEFORE_WITH":
        return True
    entries = dis.Bytecode(code).exception_entries  # type: ignore[attr-defined]
    handlers = [e.target for e in entries if e.start <= offset + 2 < e.end]
    if not handlers:
        return True
    ours, ranges = {handlers[0]}, []
    while True:
        ranges = [(e.start, e.end) for e in entries if e.target in ours]
        inner = {e.target for e in entries if any(a <= e.target < b for a, b in ranges)}
        if inner <= ours:
            return _suspends_within(code, ranges)
        ours |= inner


def body_awaits(frame: FrameType) -> bool:
    """Of the `with` statement that the frame is just entering."""
    code, offset = frame.f_code, frame.f_lasti
    known = _known.get((code, offset))
    if known is None:
        try:
            look = _since_311 if sys.version_info >= (3, 11) else _before_311
            known = look(code, offset)
        except Exception:  # byte code of another make
            known = True
        if len(_known) < KNOWN:
            _known[code, offset] = known
    return known
