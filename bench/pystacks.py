"""Python stacks from outside at 1 kHz: what looking costs, and what it costs the program."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from places import QUICK, SONDE, environment, peer
from tables import Row, Spread, Table

HZ = 1000
MOST_OF_A_CORE, MOST_SLOWER = 0.03, 1.01

# A fixed amount of work, 25 calls deep; prints its own wall and CPU seconds.
WORK = """
import sys, time
def spin(n):
    total = 0
    for i in range(n):
        total += i * i
    return total
def deep(level, n):
    return deep(level - 1, n) if level else spin(n)
start, cpu = time.perf_counter(), time.process_time()
for _ in range(int(sys.argv[1])):
    deep(24, 20000)
print(time.perf_counter() - start, time.process_time() - cpu)
"""


def children_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run(command: list, rounds: int) -> tuple[float, float, float]:
    """Wall and CPU seconds of the work, and CPU seconds of whoever looked."""
    before = children_cpu()
    done = subprocess.run(
        [*map(str, command), "-c", WORK, str(rounds)],
        check=True,
        capture_output=True,
        text=True,
        env=environment(),
    )
    line = next(x for x in done.stdout.splitlines() if len(x.split()) == 2)
    wall, cpu = map(float, line.split())
    return wall, cpu, children_cpu() - before - cpu


def py_spy() -> Path | None:
    place = peer("py-spy")
    if not (place / "bin/py-spy").exists():
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "-q", "--target", place, "py-spy"],
            check=False,
            capture_output=True,
        )
    return place / "bin/py-spy" if (place / "bin/py-spy").exists() else None


def ours(python: str, rounds: int, into: Path) -> tuple[float, float]:
    """The work's wall seconds under Sonde, and the share of a core that looking took."""
    options = ["--rate", HZ, "--no-monitors", "--no-preload", "--no-hang"]
    wall, _, _ = run([SONDE, "run", "-q", "-o", into, *options, "--", python], rounds)
    done = subprocess.run(
        [SONDE, "report", into, "--json"], check=True, capture_output=True, env=environment()
    )
    found = json.loads(done.stdout)["python"]
    return wall, found["cost_s"] / found["main_wall_s"]


def row(name: str, slower: list, core: list, bars: bool) -> Row:
    times, share = Spread.of(slower), Spread.of(core)
    cells = [
        f"{times.median:.3f}",
        f"{times.low:.3f}–{times.high:.3f}",
        f"{share.median * 100:.1f} %",
    ]
    result = Row(name, cells, {"program": times.median, "core": share.median})
    if bars:
        result.bar = f"≤ {MOST_SLOWER}, ≤ 3 %"
        result.passed = times.median <= MOST_SLOWER and share.median <= MOST_OF_A_CORE
    return result


def stacks() -> Table:
    table = Table(
        "pystacks",
        f"Python stacks at {HZ} Hz, 25 calls deep",
        ["program ×", "spread", "of a core"],
    )
    python, rounds, pairs = sys.executable, 700 if QUICK else 1500, 3 if QUICK else 7
    spy = py_spy()
    bare, sonde, theirs = [], ([], []), ([], [])
    with tempfile.TemporaryDirectory() as folder:
        for i in range(pairs):
            bare.append(run([python], rounds)[0])
            wall, core = ours(python, rounds, Path(folder) / str(i))
            sonde[0].append(wall / bare[-1])
            sonde[1].append(core)
            if not spy:
                continue
            out = Path(folder) / "spy"
            command = [spy, "record", "-r", HZ, "-f", "raw", "--nonblocking", "-o", out, "--"]
            wall, _, cpu = run([*command, python], rounds)
            theirs[0].append(wall / bare[-1])
            theirs[1].append(cpu / wall)
    table.rows.append(row("Sonde", *sonde, bars=True))
    if spy:
        table.rows.append(row("py-spy, not stopping it", *theirs, bars=False))
    else:
        table.rows.append(Row("py-spy", [], skipped="it could not be installed"))
    table.note = (
        "program ×: wall time of the same work with over without, in turn. of a core: CPU "
        "time of looking; py-spy's with its start and end."
    )
    return table
