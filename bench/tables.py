"""Rows and tables of `make bench`, and the file for machines."""

from __future__ import annotations

import json
import os
import platform
import statistics
import textwrap
import time
from dataclasses import dataclass, field
from pathlib import Path

QUIET_PASSES = 3  # so many quiet passes are enough to leave the others out
# In a quiet pass the thread was robbed of its core, and its helpers starved, for less
# than these shares of the time (measure.h).
ROBBED, STARVED = 0.3, 0.02


@dataclass
class Spread:
    """Median, least and most of a few numbers."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, numbers: list[float]) -> Spread:
        return cls(statistics.median(numbers), min(numbers), max(numbers))


@dataclass
class Timing:
    """What passes of floor and subject say: ns per zone."""

    floor: Spread
    subject: Spread
    ratio: Spread
    over: Spread  # subject − floor
    clock: str  # as in timing()
    used: int
    passes: int
    noisy: bool  # CPU time had to stand in for wall time


def is_quiet(loop: dict) -> bool:
    return loop["robbed"] <= ROBBED and loop["starved"] <= STARVED


def timing(answer: dict, clock: str = "wall") -> Timing:
    """clock: "wall" is wall time, less the time in which something else had the core;
    when nearly every pass was disturbed even so, it becomes "thread": the thread's CPU
    time. "all" is wall time of several threads, "process" the CPU time of all threads
    of the process."""
    pairs = list(zip(answer["floor"], answer["subject"], answer["process_cpu_ns"]))
    passes = len(pairs)
    noisy = False
    if clock == "wall":
        quiet = [p for p in pairs if is_quiet(p[0]) and is_quiet(p[1])]
        if len(quiet) >= min(QUIET_PASSES, passes):
            pairs = quiet
        else:
            clock, noisy = "thread", True
    key = "ns" if clock in ("wall", "all") else "cpu_ns"
    floor = [f[key] for f, _, _ in pairs]
    subject = [p if clock == "process" else s[key] for _, s, p in pairs]
    return Timing(
        Spread.of(floor),
        Spread.of(subject),
        Spread.of([s / f for s, f in zip(subject, floor)]),
        Spread.of([s - f for s, f in zip(subject, floor)]),
        clock,
        len(pairs),
        passes,
        noisy,
    )


@dataclass
class Row:
    name: str
    cells: list[str]
    data: dict = field(default_factory=dict)
    bar: str = ""
    passed: bool | None = None  # None: there is no bar
    void: str = ""  # why the row says nothing: a failure
    skipped: str = ""  # why there is nothing to say
    noisy: bool = False

    def verdict(self) -> str:
        if self.void:
            return "VOID: " + self.void
        if self.skipped:
            return "skipped: " + self.skipped
        word = {None: "", True: "ok", False: "MISS"}[self.passed]
        return word + (", noisy" if word and self.noisy else "")


@dataclass
class Table:
    topic: str
    title: str
    columns: list[str]
    rows: list[Row] = field(default_factory=list)
    note: str = ""

    def print(self) -> None:
        lines = [["", *self.columns, "bar", ""]]
        for row in self.rows:
            blank = [""] * (len(self.columns) - len(row.cells))
            lines.append([row.name, *row.cells, *blank, row.bar, row.verdict()])
        widths = [max(map(len, column)) for column in zip(*lines)]
        print(f"\n{self.title}")
        for line in lines:
            cells = [line[0].ljust(widths[0])]
            cells += [c.rjust(w) for c, w in zip(line[1:-1], widths[1:-1])]
            print(("  " + "  ".join([*cells, line[-1]])).rstrip())
        for text in textwrap.wrap(self.note, 86):
            print(f"  {text}")


def machine() -> dict:
    model = "unknown"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return {
        "cpu": model,
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "load": os.getloadavg()[0],
    }


def write_results(path: Path, tables: list[Table], quick: bool, where: dict) -> None:
    rows = [
        {
            "topic": table.topic,
            "name": row.name,
            "bar": row.bar or None,
            "passed": row.passed,
            "noisy": row.noisy,
            "void": row.void or None,
            "skipped": row.skipped or None,
            **row.data,
        }
        for table in tables
        for row in table.rows
    ]
    answer = {
        "schema": "sonde.bench/1",
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": where,
        "quick": quick,
        "rows": rows,
    }
    path.write_text(json.dumps(answer, indent=1) + "\n")
