"""Sampling native stacks: what the program pays and what the supervisor takes."""

from __future__ import annotations

import statistics

from places import (
    QUICK,
    SONDE,
    Failed,
    environment,
    measure,
    memory,
    new_directory,
    program,
)
from tables import Row, Spread, Table

BAR_SHARE, BAR_RATIO = 0.03, 1.01


def one(name: str, bar: bool, **arguments) -> Row:
    try:
        with new_directory(memory()) as directory:
            answer = measure(
                program("sample"),
                output=directory,
                passes=6 if QUICK else 20,
                ms=500 if QUICK else 1000,
                **arguments,
            )
    except Failed as error:
        text = str(error)
        return Row(name, [], **({"void": text} if bar else {"skipped": text}))
    ratios = [on / off for on, off in zip(answer["on_ns"], answer["off_ns"])]
    ratio, share = Spread.of(ratios), Spread.of(answer["share"])
    spread = statistics.pstdev(answer["off_ns"]) / statistics.mean(answer["off_ns"])
    row = Row(
        name,
        [
            f"{ratio.median:.4f}",
            f"{ratio.low:.3f}–{ratio.high:.3f}",
            f"{100 * share.median:.2f} %",
            f"{100 * share.high:.2f} %",
        ],
        {"ratio": ratio.median, "share": share.median, "measured": answer},
        noisy=spread > 0.005,
    )
    if bar:
        row.bar = f"≤ {BAR_RATIO}, ≤ {100 * BAR_SHARE:.0f} %"
        row.passed = ratio.median <= BAR_RATIO and share.median <= BAR_SHARE
    return row


def work_under_sonde(rate: int) -> float:
    """CPU ns of the same work in a process that samples itself so often; 0: not at all."""
    with new_directory(memory()) as run:
        prefix = (SONDE, "run", "--quiet", "--no-report", "-o", run, "--rate", rate, "--")
        answer = measure(
            program("sample"),
            prefix=prefix,
            env=environment(SONDE_STACKS="timer"),
            who="self",
            ms=500 if QUICK else 1000,
        )
    return answer["work_ns"][0]


def by_timers(name: str, rate: int) -> Row:
    """Runs with and without in turn: a process cannot be asked to begin and to stop."""
    try:
        off, on = [], []
        for _ in range(6 if QUICK else 20):
            off.append(work_under_sonde(0))
            on.append(work_under_sonde(rate))
    except Failed as error:
        return Row(name, [], skipped=str(error))
    ratio = Spread.of([a / b for a, b in zip(on, off)])
    spread = statistics.pstdev(off) / statistics.mean(off)
    return Row(
        name,
        [f"{ratio.median:.4f}", f"{ratio.low:.3f}–{ratio.high:.3f}", "–", "–"],
        {"ratio": ratio.median, "measured": {"off_ns": off, "on_ns": on}},
        noisy=spread > 0.005,
    )


def sample() -> Table:
    return Table(
        "sample",
        "Native stacks of a busy thread, 24 frames without frame pointers",
        ["program ×", "spread", "supervisor", "most"],
        [
            one("sonde, 99 Hz (default)", True, rate=99),
            one("sonde, 199 Hz", False, rate=199),
            one("sonde, 999 Hz", False, rate=999),
            by_timers("sonde by timers, 99 Hz", 99),
            by_timers("sonde by timers, 999 Hz", 999),
            one("perf record dwarf, 99 Hz", False, who="perf", rate=99),
            one("perf record dwarf, 999 Hz", False, who="perf", rate=999),
        ],
        note="program ×: CPU time with over without, every other second of one process. "
        "supervisor: its CPU time per CPU time of the program. perf only writes the stacks to "
        "a file, unwinding them comes later in perf report; its start and end count too. "
        "By timers: where perf_event is forbidden; whole runs in turn.",
    )
