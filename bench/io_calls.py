"""What counting files costs one call, beside strace on the same loop."""

from __future__ import annotations

import shutil
from typing import Any

from places import QUICK, SONDE, Failed, measure, memory, new_directory, program
from tables import Row, Table, timing

PASSES = 5 if QUICK else 11
CALLS = 50_000 if QUICK else 200_000
BAR_NS = 40.0

# name, arguments, whether the bar holds for it
VARIANTS: list[tuple[str, dict[str, Any], bool]] = [
    ("read 4 KiB, cached", {"op": "read"}, True),
    ("pread 4 KiB, cached", {"op": "pread"}, True),
    ("… with threads", {"op": "pread", "threads": 1}, True),
    ("… of another thread's file", {"op": "pread", "threads": 1, "owner": 0}, True),
    ("write to /dev/null", {"op": "write"}, True),
    ("fread 64 B", {"op": "fread"}, True),
    ("fgets, lines of 80", {"op": "fgets"}, True),
    ("… with threads", {"op": "fgets", "threads": 1}, True),
    ("getc", {"op": "getc"}, True),
    ("… with threads", {"op": "getc", "threads": 1}, True),
    ("fputs, lines of 80", {"op": "fputs"}, True),
    ("open + close", {"op": "open"}, False),
]


def calls_of(op: str) -> int:
    return CALLS * 10 if op in ("fread", "fgets", "getc", "fputs") else CALLS


def one(name: str, arguments: dict[str, Any], has_bar: bool) -> Row:
    with new_directory(memory()) as run:
        prefix = (SONDE, "run", "--quiet", "-o", run, "--")
        try:
            answer = measure(
                program("io"),
                prefix=prefix,
                calls=calls_of(arguments["op"]),
                passes=PASSES,
                **arguments,
            )
        except Failed as error:
            return Row(name, [], void=str(error))
    t = timing(answer)
    cells = [
        f"{t.floor.median:.1f}",
        f"{t.subject.median:.1f}",
        f"{t.over.median:+.1f}",
        f"{t.over.low:+.0f} … {t.over.high:+.0f}",
    ]
    row = Row(name, cells, {"added_ns": t.over.median, "floor_ns": t.floor.median})
    row.noisy = t.noisy
    if has_bar:
        row.bar, row.passed = f"≤ +{BAR_NS:.0f} ns", t.over.median <= BAR_NS
    return row


def strace() -> Row:
    """Its floor is the loop without it: under it both halves are traced."""
    name = "strace -c, read 4 KiB"
    if not shutil.which("strace"):
        return Row(name, [], skipped="strace is not installed")
    arguments: dict[str, Any] = {"op": "read", "calls": CALLS // 10, "passes": 3}
    tracer = ("strace", "-f", "-c", "-e", "trace=read", "-o", "/dev/null")
    try:
        bare = timing(measure(program("io"), **arguments), "thread")
        traced = timing(measure(program("io"), prefix=tracer, **arguments), "all")
    except Failed as error:
        return Row(name, [], skipped=str(error))
    added = traced.subject.median - bare.subject.median
    cells = [f"{bare.subject.median:.1f}", f"{traced.subject.median:.1f}", f"{added:+.1f}"]
    return Row(name, cells, {"added_ns": added})


def io() -> Table:
    table = Table(
        "io",
        "Files: what one call costs with and without libsonde-preload.so (ns)",
        ["libc", "counted", "added", "spread"],
        note="Floor and subject alternate in one process: libc's own function, then the "
        "interposed one. Counted: bytes, latency, size, order, zone, per file.",
    )
    table.rows = [one(*variant) for variant in VARIANTS] + [strace()]
    return table
