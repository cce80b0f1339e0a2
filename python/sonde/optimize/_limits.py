"""What this process may use: cores, memory, and how much of it is taken.

The cgroup's limit counts where there is one, else the machine. Missing is None.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Optional

from .._operation import resident_mb

PROC = Path("/proc")
CGROUP = Path("/sys/fs/cgroup")
ENDLESS = 1 << 60  # version 1 of cgroups writes a huge number for "no limit"


def cores() -> int:
    """Cores this process may run on, at least one."""
    try:
        allowed = len(os.sched_getaffinity(0))
    except AttributeError:
        allowed = os.cpu_count() or 1
    quota = _quota()
    return max(1, allowed if quota is None else min(allowed, round(quota)))


def _quota() -> Optional[float]:
    words = _words(_cgroup_folder("cpu") / "cpu.max")
    if len(words) == 2 and words[0] != "max":
        return max(1.0, int(words[0]) / int(words[1]))
    return None


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except (OSError, ValueError):
        return []


def _cgroup_folder(controller: str) -> Path:
    """Where this process's group is, of either version; the root where it is unknown."""
    for line in _words(PROC / "self" / "cgroup"):
        parts = line.split(":", 2)
        if len(parts) == 3 and controller in parts[1].split(","):
            return CGROUP / controller / parts[2].lstrip("/")
        if len(parts) == 3 and parts[0] == "0" and parts[2] != "/":
            folder = CGROUP / parts[2].lstrip("/")
            if folder.is_dir():
                return folder
    return CGROUP


def _number(path: Path) -> Optional[int]:
    words = _words(path)
    return int(words[0]) if words and words[0].isdigit() else None


def _machine(name: str) -> Optional[int]:
    words = _words(PROC / "meminfo")
    try:
        return int(words[words.index(name + ":") + 1]) * 1024
    except (ValueError, IndexError):
        return None


def _group() -> tuple[Optional[int], Optional[int]]:
    """Limit and use of the cgroup, None where it has none."""
    folder = _cgroup_folder("memory")
    for limit, used in (
        ("memory.max", "memory.current"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes"),
    ):
        most = _number(folder / limit)
        if most is not None and most < ENDLESS:
            return most, _unreclaimable(folder, _number(folder / used))
    return None, None


def _unreclaimable(folder: Path, used: Optional[int]) -> Optional[int]:
    """Without file pages, which the kernel takes back before it kills anybody."""
    words = _words(folder / "memory.stat")
    if used is None or "inactive_file" not in words:
        return used
    return max(0, used - int(words[words.index("inactive_file") + 1]))


def total_bytes() -> Optional[int]:
    """Memory there is: the cgroup's limit, or the machine's."""
    limit, machine = _group()[0], _machine("MemTotal")
    return min((x for x in (limit, machine) if x is not None), default=None)


def used_bytes() -> Optional[int]:
    """What is taken of it, by anybody."""
    limit, used = _group()
    total = _machine("MemTotal")
    if limit is not None and used is not None and (total is None or limit < total):
        return used
    free = _machine("MemAvailable")
    return None if total is None or free is None else total - free


def room_bytes(share: float) -> Optional[int]:
    """What may still be taken while at most `share` of all memory is used."""
    total, used = total_bytes(), used_bytes()
    return None if total is None or used is None else max(0, int(share * total) - used)


def own_bytes() -> Optional[int]:
    """Resident memory of this process and its children; at most: pages that a forked
    child still shares with its parent count for both."""
    mine = resident_mb()
    if mine is None:
        return None
    return int(mine * 2**20) + sum(map(_private, _children(os.getpid())))


def _children(pid: int) -> list[int]:
    found = []
    for task in (PROC / str(pid) / "task").glob("*/children"):
        for word in _words(task):
            found += [int(word), *_children(int(word))]
    return found


def _private(pid: int) -> int:
    words = _words(PROC / str(pid) / "statm")
    if len(words) < 3:
        return 0
    return max(0, int(words[1]) - int(words[2])) * os.sysconf("SC_PAGE_SIZE")
