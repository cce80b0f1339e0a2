"""What one zone costs: recorded, switched off, and in the peers."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import peers
from places import (
    DISK,
    QUICK,
    SONDE,
    Failed,
    file_system,
    measure,
    memory,
    new_directory,
    program,
)
from tables import Row, Table, Timing, timing

PASSES = 5 if QUICK else 11
ZONES = 2_000_000 if QUICK else 10_000_000
OFF_ZONES = 50_000_000 if QUICK else 200_000_000
# Twice around a trace of this size, and every block is a recycled one.
MAX_TRACE = 32 << 20
STEADY: dict[str, Any] = {"max_trace": MAX_TRACE, "warmup": 4_000_000}
# The same for the default of 1 GiB, half of which one process may take.
DEFAULT_STEADY: dict[str, Any] = {"warmup": 80_000_000}


def check(directory: Path, expected: float) -> tuple[dict, str]:
    """What was really recorded, and why the row is void ("" when it is not)."""
    found = measure(program("check"), directory)
    problems = []
    if found["zones"] != expected:
        problems.append(f"{found['zones']:.0f} of {expected:.0f} zones counted")
    if found["lost"]:
        reason = f"{int(found['lost_reason']):#x}"
        problems.append(f"{found['lost']:.0f} events lost (reason {reason})")
    if found["broken"]:
        problems.append(f"{found['broken']:.0f} zones broken")
    return found, ", ".join(problems)


def run_zone(
    binary: str = "zone", where: Path | None = None, supervised=False, **arguments
):
    """One variant in a process and a directory of its own: measured, found, void."""
    with new_directory(where or memory()) as run:
        prefix: tuple = ()
        if supervised:
            prefix = (
                SONDE,
                "run",
                "--quiet",
                "-o",
                run,
                "--max-trace",
                MAX_TRACE,
                "--",
            )
        else:
            arguments["output"] = run
        answer = measure(program(binary), prefix=prefix, **arguments)
        if arguments.get("state") == "off":
            return answer, {}, ""
        found, void = check(run, answer["zones"])
        answer["lost"] = found["lost"]
        return answer, found, void


def data_of(t: Timing, answer: dict, found: dict) -> dict:
    return {
        "floor_ns": t.floor.median,
        "ns": t.subject.median,
        "ratio": t.ratio.median,
        "ratio_low": t.ratio.low,
        "ratio_high": t.ratio.high,
        "over_ns": t.over.median,
        "clock": t.clock,
        "measured": answer,
        "found": found,
    }


# ---- Recorded ------------------------------------------------------------------------


def recorded_cells(t: Timing, answer: dict) -> list[str]:
    lost = answer.get("lost")
    return [
        f"{t.floor.median:.2f}",
        f"{t.subject.median:.2f}",
        f"{t.ratio.median:.3f}",
        f"{t.ratio.low:.2f}–{t.ratio.high:.2f}",
        t.clock,
        f"{t.used}/{t.passes}",
        "?" if lost is None else f"{lost:.0f}",
        f"{answer['own_kb'] / 1024:.1f}",
        f"{answer['file_kb'] / 1024:.1f}",
    ]


def recorded_row(
    name: str, clock: str, answer: dict, found: dict
) -> tuple[Row, Timing]:
    t = timing(answer, clock)
    return Row(name, recorded_cells(t, answer), data_of(t, answer, found)), t


def recorded(name: str, bar: float | None, clock: str = "wall", **variant) -> Row:
    try:
        answer, found, void = run_zone(**{"passes": PASSES, "zones": ZONES, **variant})
    except Failed as error:
        return Row(name, [], void=str(error))
    row, t = recorded_row(name, clock, answer, found)
    row.void, row.noisy = void, t.noisy
    if bar is not None:
        row.bar, row.passed = f"≤ {bar:.2f} ×", t.ratio.median <= bar
    return row


def threads(count: int) -> list[Row]:
    """With more threads than cores wall time is shared: CPU time has the bar."""
    variant = {"threads": count, "drainer": "anywhere", "zones": ZONES // 4, **STEADY}
    cpu = recorded(f"{count} threads", 1.10, clock="thread", **variant)
    if not cpu.data:
        return [cpu]
    wall, _ = recorded_row("… wall time", "all", cpu.data["measured"], {})
    return [cpu, wall]


def peer(name: str, run: Callable[..., dict], cells=recorded_cells, **arguments) -> Row:
    reason = peers.why_missing(run.__name__.split("_")[0])
    if reason:
        return Row(name, [], skipped=reason)
    try:
        answer = run(**{"passes": PASSES, "zones": ZONES, **arguments})
    except (Failed, OSError, subprocess.SubprocessError) as error:
        return Row(name, [], skipped=f"it failed: {error}")
    t = timing(answer)
    return Row(name, cells(t, answer), data_of(t, answer, {}))


def zone() -> Table:
    on_disk = f"on {file_system(DISK)}"
    growing: dict[str, Any] = {"zones": ZONES // 5}  # fits into the default trace
    supervised: dict[str, Any] = {"supervised": True, "drainer": "supervisor"}
    hoarders = {"passes": 3, "zones": ZONES // 2}  # they keep everything
    table = Table(
        "zone",
        "A recorded zone (begin + end), ns; floor: 2 tick readings, 2 stores of 8 B",
        [
            "floor",
            "zone",
            "× floor",
            "spread",
            "clock",
            "passes",
            "lost",
            "own",
            "file",
        ],
    )
    table.rows = [
        recorded("drainer on another core", 1.10, **STEADY),
        recorded(f"… {on_disk}", 1.10, where=DISK, **STEADY),
        recorded("… SONDE_ZONE { }", 1.10, form="block", **STEADY),
        recorded("… libsonde.so", 1.10, binary="zone_so", **STEADY),
        recorded("… under sonde run", 1.10, **supervised, **STEADY),
        recorded("… default trace, 1 GiB", 1.10, **DEFAULT_STEADY),
        recorded("… file still growing", 1.10, **growing),
        recorded(f"… file still growing {on_disk}", 1.10, where=DISK, **growing),
        recorded("drainer on the same core", 1.70, "process", drainer="same", **STEADY),
        recorded("no drainer: the thread folds", None, drainer="none", **STEADY),
        *(row for count in (2, 4, 8) for row in threads(count)),
        peer("LTTng-UST", peers.lttng, passes=3),
        peer("Tracy without server", peers.tracy, **hoarders),
        peer("uftrace, -pg", peers.uftrace, **hoarders),
    ]
    table.note = (
        f"In {memory()} unless it says {on_disk}. lost: events. own, file: MiB of "
        "resident memory gained after the warm-up, the program's own and of mapped "
        "files. clock: wall time, less what others took of the core; where fewer than "
        "three `passes` were calm, the thread's CPU time (noisy). "
        "Same core: CPU time of the whole process until it is drained. Threads: CPU "
        "time per zone of one of them. Peers: LTTng-UST blocks when full, Tracy "
        "through its C interface. Perfetto's SDK is in no registry: not measured."
    )
    return table


# ---- Off -----------------------------------------------------------------------------


def off_cells(t: Timing, _: dict) -> list[str]:
    return [
        f"{t.floor.median:.3f}",
        f"{t.subject.median:.3f}",
        f"{t.over.median:.3f}",
        f"{t.over.low:.3f}–{t.over.high:.3f}",
        t.clock,
        f"{t.used}/{t.passes}",
    ]


def off(name: str, bar: float | None, **variant) -> Row:
    try:
        answer, found, void = run_zone(
            **{"passes": PASSES, "zones": OFF_ZONES, **variant}
        )
    except Failed as error:
        return Row(name, [], void=str(error))
    t = timing(answer)
    row = Row(name, off_cells(t, answer), data_of(t, answer, found), void=void)
    row.noisy = t.noisy
    if bar is not None:
        row.bar, row.passed = f"≤ {bar} ns", t.over.median <= bar
    return row


def zone_off() -> Table:
    table = Table(
        "off",
        "A zone that is off, ns over an empty loop",
        ["empty", "with zone", "over it", "spread", "clock", "passes"],
    )
    table.rows = [
        off("no session", 0.2, state="off"),
        off("… SONDE_ZONE { }", 0.2, state="off", form="block"),
        off("… libsonde.so", 0.2, state="off", binary="zone_so"),
        off("paused", 0.2, state="paused"),
        off("site switched off", 0.2, state="site-off", zones=OFF_ZONES // 20),
        off("eight in a row, each", None, state="off", form="site8"),
        peer("LTTng-UST", peers.lttng_off, off_cells, zones=OFF_ZONES),
    ]
    return table
