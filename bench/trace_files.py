"""What traces weigh, and how fast they become statistics."""

from __future__ import annotations

from places import QUICK, Failed, measure, memory, new_directory, program
from tables import Row, Spread, Table

# name, pattern, zones, whether it records zones alone
LOOPS = [
    ("zones of 20 ns", "tight", 1_000_000 if QUICK else 4_000_000, True),
    ("nested zones, 0.1–5 µs", "nested", 1_000_000 if QUICK else 4_000_000, True),
    ("training, zones of 1 ms", "training", 60_000, True),
    ("… with steps and values", "values", 60_000, False),
]
LIVE_BAR, COMPACT_BAR = 16, 7


def weigh(name: str, pattern: str, zones: int, zones_alone: bool) -> Row:
    try:
        with new_directory(memory()) as run:
            answer = measure(program("bytes"), pattern=pattern, zones=zones, output=run)
    except Failed as error:
        return Row(name, [], void=str(error))
    count = answer["zones"]
    each = {k: answer[f"{k}_bytes"] / count for k in ("event", "live", "compacted")}
    cells = [f"{count:.0f}", *(f"{size:.2f}" for size in each.values())]
    row = Row(name, cells, {"bytes": each, "measured": answer})
    if answer["lost"]:
        row.void = "zones are missing after compaction"
    if zones_alone:
        row.bar = f"≤ {LIVE_BAR}, ≤ {COMPACT_BAR}"
        # Each thread says once who it is: a hundredth of a byte per zone here.
        row.passed = (
            each["event"] <= LIVE_BAR + 0.01 and each["compacted"] <= COMPACT_BAR
        )
    else:
        row.cells[1] = ""  # longer records than a word
    return row


def size() -> Table:
    table = Table(
        "bytes",
        "Disk space, bytes per zone",
        ["zones", "events", "live file", "compacted"],
        [weigh(*loop) for loop in LOOPS],
    )
    table.note = (
        "events: their words (bar 16); live file: with block heads, names, statistics "
        "and free blocks; compacted: the whole file (bar 7). The last loop has a step, "
        "a value and a metric to every six zones; their bytes count as the zones'."
    )
    return table


def fold_speed(name: str, pattern: str) -> list[Row]:
    """Two ways to the statistics: a folder publishing into the file, and a reader."""
    try:
        with new_directory(memory()) as run:
            answer = measure(
                program("fold"),
                pattern=pattern,
                zones=1_000_000 if QUICK else 4_000_000,
                passes=5 if QUICK else 11,
                output=run,
            )
    except Failed as error:
        return [Row(name, [], void=str(error))]
    floor = Spread.of(answer["floor"])
    rows = []
    for label, key in ((name, "folder"), ("… opened for a report", "reader")):
        speed = Spread.of(answer[key])
        cells = [
            f"{floor.median / 1e6:.0f}",
            f"{speed.median / 1e6:.1f}",
            f"{speed.low / 1e6:.0f}–{speed.high / 1e6:.0f}",
        ]
        data = {"floor": floor.median, "events_per_s": speed.median, "measured": answer}
        rows.append(Row(label, cells, data, "≥ 40", speed.median >= 40e6))
    return rows


def fold() -> Table:
    table = Table(
        "fold",
        "Folding on one core, million events per second of CPU time",
        ["read only", "folded", "spread"],
    )
    table.rows = [
        *fold_speed("one zone in a loop", "tight"),
        *fold_speed("8 nested paths", "nested"),
        *fold_speed("4,032 paths in random order", "random"),
    ]
    table.note = "From a raw file, with opening, loading and publishing."
    return table
