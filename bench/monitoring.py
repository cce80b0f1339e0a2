"""What one sample of the system costs, beside unparsed reading and psutil."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from places import QUICK, Failed, environment, measure, program
from tables import Row, Spread, Table, timing

BAR = 1.10  # 13 µs where the floor is 11.8

# The same four readings, as people do them; alternating with nothing: it has no floor.
PSUTIL = """
import json, time, psutil
process = psutil.Process()
def sample():
    process.cpu_times(); process.memory_info(); process.io_counters(); psutil.cpu_times()
def spent(n):
    wall, cpu = time.perf_counter(), time.thread_time()
    for _ in range(n): sample()
    return 1e9 * (time.thread_time() - cpu) / n
spent(200)
print(json.dumps({"ns": [spent(1000) for _ in range(%d)], "version": psutil.__version__}))
"""


def psutil_row() -> Row:
    name = "psutil: cpu_times, memory_info, io_counters, cpu_times()"
    for python in dict.fromkeys(("/usr/bin/python3", sys.executable)):
        if not Path(python).exists():
            continue
        done = subprocess.run(
            [python, "-c", PSUTIL % (3 if QUICK else 7)],
            check=False,
            capture_output=True,
            text=True,
            env=environment(),
        )
        if done.returncode == 0:
            answer = json.loads(done.stdout)
            spread = Spread.of(answer["ns"])
            cells = ["", f"{spread.median / 1e3:.1f}", span(spread)]
            return Row(
                f"{name} {answer['version']}", cells, {"ns": spread.median}
            )
    return Row(name, [], skipped="python3-psutil is not installed")


def span(spread: Spread) -> str:
    return f"{spread.low / 1e3:.1f}–{spread.high / 1e3:.1f}"


def sample() -> Table:
    table = Table(
        "monitor",
        "One sample of the system, µs",
        ["floor", "cost", "spread", "ratio"],
    )
    try:
        answer = measure(
            program("monitor"),
            passes=5 if QUICK else 21,
            samples=1000 if QUICK else 3000,
        )
    except Failed as error:
        table.rows.append(Row("Sonde", [], void=str(error)))
        return table
    result = timing(answer)
    table.rows.append(
        Row(
            "Sonde: stat, statm, io, /proc/stat, parsed",
            [
                f"{result.floor.median / 1e3:.2f}",
                f"{result.subject.median / 1e3:.2f}",
                span(result.subject),
                f"{result.ratio.median:.3f}",
            ],
            {
                "floor_ns": result.floor.median,
                "ns": result.subject.median,
                "ratio": result.ratio.median,
                "clock": result.clock,
            },
            f"≤ {BAR:.2f} × floor",
            result.ratio.median <= BAR,
            noisy=result.noisy,
        )
    )
    rounds = Spread.of([r["cpu_ns"] for r in answer["round"]])
    table.rows.append(
        Row(
            "Sonde: a whole round, all monitors, one process",
            ["", f"{rounds.median / 1e3:.1f}", span(rounds)],
            {"ns": rounds.median},
        )
    )
    table.rows.append(psutil_row())
    table.note = (
        "floor: the same four files through kept descriptors and pread, not parsed, in "
        "the same process, pass by pass. A round is made once a second by default."
    )
    return table
