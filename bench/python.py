"""What a zone costs in Python, beside its floor and its peers."""

from __future__ import annotations

import os
import statistics
import subprocess

from places import (
    BUILD,
    QUICK,
    ROOT,
    Failed,
    environment,
    measure,
    memory,
    new_directory,
)
from recording import check
from tables import Row, Table

PASSES = 5 if QUICK else 11
ZONES = 200_000 if QUICK else 1_000_000
PEERS = BUILD / "peers" / "python"


def interpreters() -> list[list[str]]:
    """[executable, version, …] of those with an extension, without debug builds."""
    done = subprocess.run(
        [ROOT / "tools" / "pythons"], capture_output=True, text=True, check=True
    )
    lines = [line.split(";") for line in done.stdout.splitlines()]
    return [line for line in lines if not line[1].endswith("d")]


def install_peers() -> None:
    """viztracer from the registry, once, for the first interpreter."""
    if os.environ.get("BENCH_PEERS") == "0" or PEERS.exists():
        return
    words = ["/usr/bin/python3", "-m", "pip", "install", "-q", "--target", PEERS]
    subprocess.run([*words, "viztracer"], check=False, capture_output=True, timeout=120)


class Times:
    """Medians of one answer, the loop taken off."""

    def __init__(self, answer: dict) -> None:
        self.answer = answer
        self.floor = statistics.median(answer["floor"])

    def of(self, state: str, name: str) -> float:
        rows = self.answer[state]
        pairs = zip(rows[name], rows["loop"])
        return statistics.median(subject - loop for subject, loop in pairs)

    def row(
        self, label: str, name: str, bar: float | None = None, over: float = 0.0
    ) -> Row:
        """`over` is taken off before the bar is applied."""
        off, on = self.of("off", name), self.of("on", name)
        row = Row(label, [f"{off:.1f}", f"{on:.1f}"], {"off_ns": off, "ns": on})
        if bar is not None:
            row.bar, row.passed = f"≤ {bar:.1f}", on - over <= bar
            if over:
                row.bar = f"≤ +{bar:.1f}"
        return row


def rows_of(t: Times, version: str) -> list[Row]:
    empty, bare = t.of("on", "empty_manager"), t.of("on", "bare_call")
    bar = 1.15 * (empty + t.floor)
    return [
        Row(f"Python {version}", [], {"floor_ns": t.floor}),
        Row("  C floor", ["", f"{t.floor:.1f}"]),
        t.row("  empty manager, nothing bound", "empty_manager"),
        t.row("  empty manager, methods", "usual_manager"),
        t.row(f"  with zone: ({version})", "with_zone", bar),
        t.row('  with sonde.zone("x"):', "inline"),
        t.row('  with sonde.zone("x", phase=…):', "inline_phase"),
        t.row(f"  begin() end() ({version})", "begin_end", 35.0),
        t.row("  bare call", "bare_call"),
        t.row(f"  decorated call ({version})", "decorated_call", 25.0, over=bare),
    ]


def peer_rows(t: Times) -> list[Row]:
    loop = statistics.median(t.answer["on"]["loop"])
    return [
        Row(f"  {name}", ["", f"{statistics.median(times) - loop:.0f}"])
        for name, times in t.answer["peers"].items()
    ]


def measured(interpreter: str, suffix_folder: object) -> tuple[dict, str]:
    path = os.pathsep.join([str(BUILD / "python"), str(PEERS)])
    with new_directory(memory()) as run:
        words = [ROOT / "bench" / "python_zone.py", suffix_folder, run, PASSES, ZONES]
        answer = measure(interpreter, *words, env=environment(PYTHONPATH=path))
        _, void = check(run, answer["zones"])
    return answer, void


def zone() -> Table:
    table = Table(
        "python",
        "A zone in Python, ns of CPU time; the loop around it is taken off",
        ["off", "recorded"],
    )
    install_peers()
    for interpreter, version, *_ in interpreters():
        try:
            answer, void = measured(interpreter, BUILD / "bench" / "python")
        except Failed as error:
            table.rows.append(Row(f"Python {version}", [], void=str(error)))
            continue
        t = Times(answer)
        rows = rows_of(t, version)
        rows[0].void = void
        table.rows += rows
        if interpreter == "/usr/bin/python3":
            table.rows += peer_rows(t)
    table.note = (
        "with zone: at most 1.15 × (empty manager + C floor) of the same run. Decorated: "
        "over the bare call. The folding thread has another core."
    )
    return table
