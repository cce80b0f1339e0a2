"""The `sonde` command: where it is, and asking it for answers.

Looked for, in this order: SONDE_COMMAND, the package (wheels carry it in `sonde/bin`), the
build tree or the installation this package lies in, PATH.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Optional

HERE = Path(__file__).absolute().parent


class CommandError(RuntimeError):
    """The `sonde` command is missing or failed; the text says which and what to do."""


def _places() -> list[Path]:
    build = HERE.parent.parent  # build/python/sonde/_command.py
    source = Path(__file__).resolve().parent.parent.parent / "build"
    installed = [
        HERE.parents[n] / "bin" / "sonde" for n in (3, 4) if n < len(HERE.parents)
    ]
    return [HERE / "bin" / "sonde", build / "sonde", source / "sonde", *installed]


def _is_script(path: str) -> bool:
    """The script that pip installs would call us again."""
    with open(path, "rb") as file:
        return file.read(2) == b"#!"


def find() -> Optional[str]:
    """Path of the command, or None."""
    named = os.environ.get("SONDE_COMMAND")
    if named:
        return named
    for place in _places():
        if place.is_file() and os.access(place, os.X_OK):
            return str(place)
    found = shutil.which("sonde")
    return found if found and not _is_script(found) else None


def command() -> str:
    """Path of the command; CommandError when there is none."""
    found = find()
    if found is None:
        raise CommandError(
            "the sonde command was not found: install the sonde wheel, put `sonde` on "
            "PATH or name it in SONDE_COMMAND"
        )
    return found


def _environment() -> dict[str, str]:
    # A command that reads must not record itself into the run it reads.
    return {k: v for k, v in os.environ.items() if k not in ("SONDE_RUN", "LD_PRELOAD")}


def ask(*arguments: Any, timeout: Optional[float] = None) -> str:
    """What `sonde ARGUMENTS` prints; CommandError with its message when it fails."""
    words = [command(), *map(str, arguments)]
    try:
        done = subprocess.run(
            words,
            capture_output=True,
            text=True,
            timeout=timeout,
            env=_environment(),
        )
    except OSError as error:
        raise CommandError(f"cannot run {words[0]!r}: {error.strerror}") from error
    if done.returncode not in (0, 1):
        raise CommandError(
            f"{' '.join(words)}: {done.stderr.strip() or done.returncode}"
        )
    return done.stdout


def main(arguments: Optional[list[str]] = None) -> int:
    """`python -m sonde` and the script `sonde`: become the command."""
    words = sys.argv[1:] if arguments is None else arguments
    path = "sonde"
    try:
        path = command()
        os.execv(path, [path, *words])
    except CommandError as error:
        print(f"sonde: {error}", file=sys.stderr)
    except OSError as error:
        print(f"sonde: cannot run {path!r}: {error.strerror}", file=sys.stderr)
    return 125 if words[:1] == ["run"] else 2
