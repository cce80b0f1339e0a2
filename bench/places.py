"""Where benchmarks run: programs, temporary directories, the machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = Path(os.environ.get("SONDE_BUILD", ROOT / "build"))
SONDE = BUILD / "sonde"
MEMORY, DISK = Path("/dev/shm"), BUILD / "bench"
QUICK = os.environ.get("BENCH_QUICK", "0") not in ("", "0")


class Failed(Exception):
    """A program of the benchmark did not do its work."""


def program(name: str) -> Path:
    return BUILD / "bench" / name


def peer(name: str) -> Path:
    return BUILD / "peers" / name


def environment(**changes: str) -> dict[str, str]:
    """Nothing in it steers Sonde."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("SONDE_")}
    return {**env, **changes}


def measure(
    *command: object, prefix: tuple = (), env: dict | None = None, **arguments
) -> dict:
    """Runs a program that prints one JSON object."""
    line = [*prefix, *command, *(f"{k}={v}" for k, v in arguments.items())]
    try:
        done = subprocess.run(
            list(map(str, line)),
            check=False,
            capture_output=True,
            text=True,
            timeout=900,
            env=env or environment(),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failed(str(error)) from error
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        raise Failed(said[-1] if said else f"exit status {done.returncode}")
    try:
        return json.loads(done.stdout)
    except ValueError as error:
        raise Failed(f"{command[0]} printed no JSON") from error


def file_system(path: Path) -> str:
    """The type of the file system that holds `path`."""
    best, kind = "", "?"
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mount, fs, *_ = line.split()
        inside = str(path.resolve()) + "/"
        if inside.startswith(mount.rstrip("/") + "/") and len(mount) >= len(best):
            best, kind = mount, fs
    return kind


@contextmanager
def new_directory(where: Path):
    """A directory, gone afterwards; yields the path of a run to be made in it."""
    path = tempfile.mkdtemp(prefix="sonde-bench-", dir=where)
    try:
        yield Path(path) / "run"
    finally:
        shutil.rmtree(path, ignore_errors=True)


def memory() -> Path:
    """A file system without a disk behind it, where there is one with room."""
    try:
        if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 2 << 30:
            return MEMORY
    except OSError:
        pass
    return DISK
