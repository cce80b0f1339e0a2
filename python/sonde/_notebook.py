"""%load_ext sonde: the cell magic %%sonde.

A magic that runs the cell itself would run a cell within a cell: its errors would be none
of the outer one, and it could not await. So the cell is rewritten instead: its first line,
the magic, becomes a call that begins a session, and what IPython calls after a cell ends it.
"""

from __future__ import annotations

import ast
import inspect
import shlex
from typing import Any, Optional

from ._operation import Operation
from ._report import Report
from ._session import Session, SessionError

NOTE = (
    "In a running kernel only this process is seen{stacks}: zones, steps, operations, "
    "samples of CPU and memory. Allocations and file access{missing} need `sonde run`."
)


class _Cell:
    """The cell that is being profiled, from begin() to the end of its execution."""

    def __init__(self, shell: Any, session: Session, awaits: bool) -> None:
        self._shell, self._session = shell, session
        self._inner = 0  # cells that this one runs itself
        for event, function in self._events():
            shell.events.register(event, function)
        self._operation = Operation("cell").begin(awaits)

    def _events(self) -> list[tuple[str, Any]]:
        return [("pre_execute", self._begins), ("post_execute", self._ends)]

    def _begins(self) -> None:
        self._inner += 1

    def _ends(self) -> None:
        self._inner -= 1
        if self._inner < 0:
            self.finish()

    def finish(self) -> None:
        """End and show the report; an interrupted or failed cell has one too."""
        for event, function in self._events():
            if function in self._shell.events.callbacks[event]:
                self._shell.events.unregister(event, function)
        if not self._session.active:
            return
        try:
            self._operation.end()
        finally:
            self._session.stop()
        _show(self._session)


def begin(shell: Any, line: str, awaits: bool) -> Optional[_Cell]:
    """Begin to profile; None, and a line that says why, when that cannot be: the cell
    runs all the same."""
    try:
        words = shlex.split(line)
        names = [w for w in words if not w.startswith("-")]
        session = Session(
            save_profiles="--keep" in words, name=names[0] if names else "cell"
        )
        session.start()
    except (SessionError, ValueError) as error:
        print(f"sonde: this cell is not profiled: {error}")
        return None
    if session.joined:
        session.stop()
        print("sonde: this kernel runs under `sonde run`; the cell is part of that run")
        return None
    return _Cell(shell, session, awaits)


def _show(session: Session) -> None:
    try:
        report = session.report()
    except (SessionError, RuntimeError, OSError) as error:
        print(f"sonde: no report: {error}")
        return
    seen = bool(report.to_dict().get("lines"))
    print(
        NOTE.format(
            stacks=", and its Python stacks" if seen else " from inside",
            missing="" if seen else ", and stacks,",
        )
    )
    shell_display(report)


def shell_display(report: Report) -> None:
    from IPython.display import display

    display(report)  # type: ignore[no-untyped-call,unused-ignore]


def _awaits(code: str) -> bool:
    try:
        compiled = compile(code, "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except (SyntaxError, ValueError):
        return False  # the cell will say so itself
    return bool(compiled.co_flags & inspect.CO_COROUTINE)


def _magic_call(lines: list[str]) -> Optional[tuple[str, str]]:
    """Line and cell, when this is what IPython has made of a cell that begins %%sonde."""
    text = "".join(lines)
    if not text.startswith("get_ipython().run_cell_magic('sonde',"):
        return None
    try:
        call = ast.parse(text.strip(), mode="eval").body
        arguments = call.args if isinstance(call, ast.Call) else []
        _, line, cell = map(ast.literal_eval, arguments)
    except (SyntaxError, ValueError):
        return None
    return line, cell


def load(shell: Any) -> None:
    """Register the magic in an IPython shell."""

    def rewritten(lines: list[str]) -> list[str]:
        found = _magic_call(lines)
        if found is None:
            return lines
        line, cell = found
        code = shell.transform_cell(cell)
        words = f"{_awaits(code):d} {line}"
        call = f"get_ipython().run_line_magic('sonde_begin', {words!r})\n"
        return [call, *code.splitlines(keepends=True)]

    def sonde_begin(line: str) -> None:
        begin(shell, line[2:], line[0] == "1")

    def sonde(line: str, cell: str) -> None:
        """%%sonde [NAME] [--keep]: profile this cell and show where its time went."""
        profiled = begin(shell, line, False)  # called by a program: not rewritten
        try:
            result = shell.run_cell(cell)
        finally:
            if profiled is not None:
                profiled.finish()
        result.raise_error()

    shell.register_magic_function(sonde, magic_kind="cell", magic_name="sonde")
    shell.register_magic_function(sonde_begin, magic_name="sonde_begin")
    for old in list(shell.input_transformers_post):  # loaded again
        if getattr(old, "__module__", None) == __name__:
            shell.input_transformers_post.remove(old)
    shell.input_transformers_post.append(rewritten)
