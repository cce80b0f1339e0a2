"""The helper process of a session: what must be seen from outside the program.

`sonde attach --session` looks at Python stacks and runs the monitors of `sonde run`, into
the session's own run directory. It is nobody's child, so that programs which wait for any
child see none of ours; it ends with the session, or with the process.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import time
from typing import Optional

from . import _command
from ._config import Config

_PR_SET_PTRACER = 0x59616D61
_START_S, _END_S = 10.0, 30.0

# What Config switches -> monitors of the command.
_MONITORS = {
    "cpu": ("cpu", "pressure"),
    "memory": ("mem", "cgroup"),
    "io": ("disk",),
    "network": ("net",),
    "temperature": ("temp",),
    "gpu_utilization": ("nvml",),
    "energy": ("power", "nvml_energy"),
}


def _wanted(config: Config) -> tuple[str, int]:
    """The lists of monitors, and the rate of stacks, 0 for none."""
    kinds = config.monitors_outside()
    names = [name for kind in _MONITORS if kind in kinds for name in _MONITORS[kind]]
    rate = {"basic": 0, "detailed": 100, "comprehensive": 250}[config.profile_level]
    return ",".join(names) or "none", rate if config.enable_line_profiling else 0


def _allow(pid: int) -> None:
    """Let it look at us where the kernel asks (Yama); harmless elsewhere."""
    with contextlib.suppress(Exception):
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_ulong(pid), 0, 0, 0)


class Companion:
    """start() and stop(); neither fails: without it the session records what it can."""

    def __init__(self, config: Config, directory: "os.PathLike[str]") -> None:
        self._config, self._directory = config, os.fspath(directory)
        self._process: Optional["subprocess.Popen[bytes]"] = None
        self._pipes: list[tuple[int, int]] = []
        self.notes: list[str] = []

    def start(self) -> None:
        monitors, rate = _wanted(self._config)
        command = _command.find()
        if command is None or (monitors == "none" and rate == 0):
            return
        words = [command, "attach", "--session", self._directory, "--rate", str(rate)]
        words += ["--monitors", monitors, "--interval", f"{self._config.interval()}"]
        try:
            process = subprocess.Popen(
                [*words, str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=_command._environment(),
            )
            process.wait(_START_S)  # it leaves the real one in the background
            line = process.stdout.readline() if process.stdout else b""
            if process.stdin is None or not line.strip().isdigit():
                self._missed(f"{command} ended with status {process.returncode}")
                _close(process)
                return
            _allow(int(line))
            process.stdin.write(b"g")
            process.stdin.flush()
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            self._missed(str(error))
            return
        self._process, self._pipes = process, _identities(process)

    def _missed(self, why: str) -> None:
        """For the session's log: stacks and monitors of the run will be missing."""
        self.notes = [f"no helper process, so nothing seen from outside: {why}"]

    def stop(self) -> None:
        """Ends it and waits until its files are complete."""
        process, self._process = self._process, None
        if process is None or process.stdin is None or process.stdout is None:
            return
        if _identities(process) != self._pipes:
            # The program closed them (os.closerange): the numbers may be its own by now.
            _closed_by_others.append(process)
            self._missed("its pipes were closed by the program")
            return
        try:
            with contextlib.suppress(OSError):  # it may be gone
                process.stdin.write(b"q")
                process.stdin.close()
            text = _read_all(process.stdout.fileno()).decode(errors="replace")
            self.notes = [note for note in text.split("\n") if note]
        except OSError as error:
            self._missed(str(error))
        finally:
            _close(process)

    def forget(self) -> None:
        """In the child of a fork: it is the parent's."""
        process, self._process = self._process, None
        if process is None:
            return
        if _identities(process) == self._pipes:
            _close(process)
        else:
            _closed_by_others.append(process)


# Kept, so that nobody closes their descriptors.
_closed_by_others: list["subprocess.Popen[bytes]"] = []


def _identities(process: "subprocess.Popen[bytes]") -> list[tuple[int, int]]:
    """Which pipes the descriptors are; fewer when some are closed."""
    found = []
    for pipe in (process.stdin, process.stdout):
        with contextlib.suppress(OSError, ValueError):
            if pipe is not None:
                status = os.fstat(pipe.fileno())
                found.append((status.st_dev, status.st_ino))
    return found


def _close(process: "subprocess.Popen[bytes]") -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


def _read_all(fd: int) -> bytes:
    """Until the end of the file, or until it takes too long."""
    text, end = b"", time.monotonic() + _END_S
    while time.monotonic() < end:
        if select.select([fd], [], [], max(0.0, end - time.monotonic()))[0]:
            more = os.read(fd, 65536)
            if not more:
                break
            text += more
    return text
