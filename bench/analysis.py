"""How long a report takes, beside the time to fold what it is about."""

from __future__ import annotations

from places import QUICK, Failed, measure, memory, new_directory, program
from tables import Row, Spread, Table

BAR = 1.5
SIZES = [(250_000, 8), (500_000, 8)] if QUICK else [(1_000_000, 8), (2_000_000, 8)]


def one(zones: int, processes: int) -> Row:
    name = f"{processes} processes, {zones / 1e6:.2g} million zones each"
    try:
        with new_directory(memory()) as run:
            answer = measure(
                program("analyse"),
                zones=zones,
                processes=processes,
                passes=3 if QUICK else 5,
                output=run,
            )
    except Failed as error:
        return Row(name, [], void=str(error))
    fold, report = Spread.of(answer["fold"]), Spread.of(answer["report"])
    ratio = report.median / fold.median
    cells = [
        f"{fold.median:.3f}",
        f"{report.median:.3f}",
        f"{ratio:.2f}",
        f"{answer['events'] / report.median / 1e6:.0f}",
        f"{answer['peak_kib'] / 1024:.0f}",
    ]
    return Row(name, cells, {"ratio": ratio, "measured": answer}, f"≤ {BAR}", ratio <= BAR)


def reports() -> Table:
    return Table(
        "analyse",
        "A report with diagnosis, seconds of CPU time",
        ["fold", "report", "ratio", "M events/s", "MiB"],
        [one(*size) for size in SIZES],
        "fold: all events of the run become statistics once. report: the folded run read, "
        "its steps accounted for, all rules asked. Twice the events must take about twice "
        "the time in the same memory.",
    )
