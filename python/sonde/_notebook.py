"""%load_ext sonde: the cell magic %%sonde."""

from __future__ import annotations

import shlex
from typing import Any

from ._report import Report
from ._session import Session, SessionError

NOTE = (
    "In a running kernel only this process is seen from inside: zones, steps, operations, "
    "samples of CPU and memory. Allocations, file access and stacks need `sonde run`."
)


def run_cell(shell: Any, line: str, cell: str) -> Any:
    """Run a cell in a session and show its report. An interrupted cell has one too."""
    words = shlex.split(line)
    keep = "--keep" in words
    names = [w for w in words if not w.startswith("-")]
    session = Session(save_profiles=keep, name=names[0] if names else "cell")
    try:
        session.start()
    except SessionError as error:
        print(f"sonde: {error}")
        return None
    if session.joined:
        session.stop()
        print("sonde: this kernel runs under `sonde run`; the cell is part of that run")
        shell.run_cell(cell)
        return None
    try:
        from ._operation import operation

        with operation("cell"):
            shell.run_cell(cell)  # shows errors and interrupts itself
    finally:
        session.stop()
    return _shown(session)


def _shown(session: Session) -> Any:
    try:
        report = session.report()
    except (SessionError, RuntimeError, OSError) as error:
        print(f"sonde: no report: {error}")
        return None
    print(NOTE)
    shell_display(report)
    return None


def shell_display(report: Report) -> None:
    from IPython.display import display

    display(report)  # type: ignore[no-untyped-call,unused-ignore]


def load(shell: Any) -> None:
    """Register the magic in an IPython shell."""

    def sonde(line: str, cell: str) -> Any:
        """%%sonde [NAME] [--keep]: profile this cell and show where its time went."""
        result = run_cell(shell, line, cell)
        return result

    shell.register_magic_function(sonde, magic_kind="cell", magic_name="sonde")
