"""Whole runs: a thousand million zones, and a program with and without `sonde run`."""

from __future__ import annotations

import statistics
import threading
import time
from pathlib import Path

from places import QUICK, SONDE, Failed, measure, memory, new_directory, program
from recording import check
from tables import Row, Table, timing

MIB = 1 << 20
LIMIT_MIB = 64


class DiskWatch(threading.Thread):
    """The most a directory held at any moment."""

    def __init__(self, directory: Path):
        super().__init__(daemon=True)
        self.directory, self.peak, self.done = directory, 0, threading.Event()

    def run(self):
        while not self.done.wait(0.1):
            try:
                held = sum(p.stat().st_blocks * 512 for p in self.directory.rglob("*"))
                self.peak = max(self.peak, held)
            except FileNotFoundError:
                pass  # a file went while we counted


def many_zones(zones: int, passes: int) -> Row:
    name = f"{zones:,} zones"
    try:
        with new_directory(memory()) as run:
            watch = DiskWatch(run)
            watch.start()
            start = time.monotonic()
            answer = measure(
                program("zone"),
                zones=zones // passes,
                passes=passes,
                max_trace=LIMIT_MIB * MIB,
                output=run,
            )
            seconds = time.monotonic() - start
            watch.done.set()
            watch.join()
            found, void = check(run, answer["zones"])
    except Failed as error:
        return Row(name, [], void=error.args[0])
    t = timing(answer)
    peak_mib = watch.peak / MIB
    cells = [
        f"{found['zones']:,.0f}",
        f"{found['lost']:.0f}",
        f"{peak_mib:.1f}",
        f"{answer['peak_kb'] / 1024:.1f}",
        f"{seconds:.1f}",
        f"{t.ratio.median:.3f}",
    ]
    data = {
        "seconds": seconds,
        "disk_peak_mib": peak_mib,
        "measured": answer,
        "found": found,
    }
    row = Row(name, cells, data, f"disk ≤ {LIMIT_MIB + 1}", peak_mib <= LIMIT_MIB + 1)
    row.void = void
    return row


def billion() -> Table:
    table = Table(
        "billion",
        f"One long run with a trace of at most {LIMIT_MIB} MiB",
        ["counted", "lost", "disk MiB", "RSS MiB", "seconds", "× floor"],
        [many_zones(50_000_000, 5) if QUICK else many_zones(1_000_000_000, 10)],
    )
    table.note = (
        "disk, RSS: the most there was, RSS with the mapped trace. seconds: with the "
        "floor. Eight warm-up zones are counted too."
    )
    return table


def overhead() -> Table:
    table = Table(
        "overhead",
        "A program of 1 ms steps with 5 zones, under `sonde run` against without",
        ["ratio", "95 % interval", "pairs"],
    )
    pairs = 20
    try:
        with new_directory(memory()) as run:
            run.mkdir()
            answer = measure(
                program("overhead"),
                sonde=SONDE,
                output=run,
                pairs=pairs,
                steps=300 if QUICK else 1000,
            )
    except Failed as error:
        table.rows = [Row("loop", [], void=str(error))]
        return table
    for name, key in (
        ("loop, wall time", "loop_ratio"),
        ("loop, CPU time", "cpu_ratio"),
    ):
        ratio, low, high = answer[key]
        cells = [f"{ratio:.4f}", f"{low:.4f}–{high:.4f}", str(pairs)]
        data = {"ratio": ratio, "low": low, "high": high}
        table.rows.append(Row(name, cells, data, "high ≤ 1.02", high <= 1.02))
    table.rows[0].data["measured"] = answer
    plain = answer["plain_s"]
    calm = max(plain) < 1.1 * min(plain)
    table.note = (
        f"The plain loop took {min(plain):.2f}–{max(plain):.2f} s: a "
        f"{'calm' if calm else 'noisy'} machine. Starting and ending the run took "
        f"{statistics.median(answer['extra_ms']):.1f} ms more, once (median)."
    )
    for row in table.rows:
        row.noisy = not calm
    return table
