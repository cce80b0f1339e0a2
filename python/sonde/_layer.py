"""What `sonde run` does inside a Python process.

Little, at first: the extension is loaded, and imports are watched for the packages that
Sonde knows (torch). Everything here fails open: what goes wrong is written to the run's
notes, for the report, and the program never sees it.

Notes are lines of JSON in one file of the run directory, `python.jsonl`, appended with one
write each, so that the file is valid at every instant whoever is killed.
"""

from __future__ import annotations

import os
import sys

from . import _sonde

TYPE_CHECKING = False  # typing is slow to import, and every interpreter gets here
if TYPE_CHECKING:
    from typing import Any, Callable, Optional

NOTES = "python.jsonl"
_MOST_BYTES = 1 << 20  # of notes in a run
_MOST_PROBLEMS = 20  # told one by one, per process

cuda_events = True  # whether the device's time at each phase is wanted

_problems = 0
_directory: Optional[str] = None
_package = ""


def _append(line: str) -> None:
    if not _directory:
        return
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    fd = os.open(os.path.join(_directory, NOTES), flags, 0o600)
    try:
        size = os.fstat(fd).st_size
        if size == 0:
            os.fchmod(fd, 0o600)  # whatever the umask
        if size < _MOST_BYTES:
            os.write(fd, line.encode("utf-8", "replace") + b"\n")
    finally:
        os.close(fd)


def note(kind: str, **fields: Any) -> None:
    """Tell the report something of this process."""
    import json

    try:
        _append(json.dumps({"kind": kind, "pid": os.getpid(), **fields}))
    except Exception:  # a full disk, a directory that is gone
        pass


def problem(where: str, error: Any) -> None:
    """Something of ours failed: count it, and tell the first ones."""
    global _problems
    _problems += 1
    if _problems <= _MOST_PROBLEMS:
        text = f"{type(error).__name__}: {error}"[:300]
        note("problem", where=where, text=text, number=_problems)


def guarded(where: str, function: Callable[..., Any], *args: Any) -> Any:
    """function(*args), or None when it fails."""
    try:
        return function(*args)
    except Exception as error:
        problem(where, error)
        return None


def start(package: str) -> None:
    """Called once by sitecustomize, before anything of the program runs."""
    global _directory, _package
    _directory = os.environ.get("SONDE_RUN")
    _package = package
    _sonde.set_package(__package__)
    _sonde.on_problem(problem)
    version = "%d.%d.%d" % sys.version_info[:3]
    try:
        _append(
            '{"kind":"interpreter","pid":%d,"version":"%s"}' % (os.getpid(), version)
        )
    except OSError:
        pass
    _tell_rank()
    if "SONDE_TRIAL" in os.environ:
        from . import _trial

        guarded("trial", _trial.start)
    from . import _imports

    _imports.watch({"torch": _torch_came, "nvtx": _nvtx_came})
    _imports.offer(package)
    os.register_at_fork(after_in_child=_after_fork)


def _tell_rank() -> None:
    rank, size = os.environ.get("RANK"), os.environ.get("WORLD_SIZE")
    if rank and size and rank.isdigit() and size.isdigit():
        note("rank", rank=int(rank), world_size=int(size))


def _torch_came(torch: Any) -> None:
    if "SONDE_TRIAL" in os.environ:
        from . import _trial

        guarded("trial", _trial.torch_comes, torch)
    from . import _torch

    _torch.install(torch)


def _nvtx_came(nvtx: Any) -> None:
    from ._torch import ranges

    ranges.nvtx_came(nvtx)


def _after_fork() -> None:
    global _problems
    _problems = 0
