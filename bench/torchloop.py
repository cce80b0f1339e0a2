"""A whole CPU training loop of torch: alone, under `sonde run`, under other profilers."""

from __future__ import annotations

import math
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from places import QUICK, ROOT, SONDE, environment
from tables import Row, Table

LOOP = ROOT / "bench" / "torch_train.py"
PAIRS, PEER_PAIRS = 20, 2 if QUICK else 5
BATCHES = 60 if QUICK else 400
BAR = 1.02


def interpreter() -> tuple[str, str]:
    """Debian's Python with torch and the peers; or Debian's alone and why."""
    if os.environ.get("BENCH_PEERS", "1") == "0":
        return "/usr/bin/python3", "BENCH_PEERS=0"
    made = subprocess.run(
        [ROOT / "tools" / "venv", "bench"], check=False, capture_output=True, text=True
    )
    if made.returncode == 0:
        return made.stdout.strip(), ""
    return "/usr/bin/python3", made.stderr.strip().splitlines()[-1]


def commands(python: str, out: Path) -> dict[str, list[object]]:
    """How each starts `python loop.py`; each at its defaults, but quiet."""
    bin = Path(python).parent
    return {
        "py-spy": [bin / "py-spy", "record", "-s", "-f", "raw", "-o", out, "--", python],
        "pyinstrument": [python, "-m", "pyinstrument", "-o", out],
        "Scalene": [python, "-m", "scalene", "--cli", "--outfile", out],
        "cProfile": [python, "-m", "cProfile", "-o", out],
        "viztracer": [python, "-m", "viztracer", "--quiet", "-o", f"{out}.json"],
        "memray": [python, "-m", "memray", "run", "-q", "-f", "-o", out],
    }


def run(command: list[object]) -> tuple[float, float, float]:
    """Seconds of the loop, of CPU in it, and of the whole command."""
    start = time.perf_counter()
    done = subprocess.run(
        [*map(str, command), str(LOOP), str(BATCHES)],
        capture_output=True,
        text=True,
        timeout=600,
        env=environment(OMP_NUM_THREADS="1"),
        check=False,
    )
    whole = time.perf_counter() - start
    for line in done.stdout.splitlines():
        if line.startswith("loop "):
            _, loop_s, cpu_s, *_ = line.split()
            return float(loop_s), float(cpu_s), whole
    said = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()
    raise RuntimeError(said[-1][:100])


def in_turn(bare: list[object], other: list[object], pairs: int, clean) -> list[tuple]:
    """(ratio of the loops, of their CPU time, seconds more around them, loop alone) of
    interleaved pairs; who goes first alternates, so that a drift of the machine cancels."""
    found = []
    for i in range(pairs):
        clean()
        first, second = (bare, other) if i % 2 == 0 else (other, bare)
        a, b = run(first), run(second)
        (loop0, cpu0, whole0), (loop1, cpu1, whole1) = (a, b) if i % 2 == 0 else (b, a)
        around = (whole1 - loop1) - (whole0 - loop0)
        found.append((loop1 / loop0, cpu1 / cpu0, around, loop0))
    return found


def signed_rank_cut(n: int, level: float = 0.95) -> int:
    """How many Walsh averages lie outside the exact interval on each side."""
    counts = [1]
    for k in range(1, n + 1):
        counts = [
            (counts[s] if s < len(counts) else 0)
            + (counts[s - k] if 0 <= s - k < len(counts) else 0)
            for s in range(len(counts) + k)
        ]
    tail, total, limit = 0, 2**n, (1 - level) / 2
    for cut, count in enumerate(counts):
        tail += count
        if tail / total > limit:
            return cut
    return 0


def interval(ratios: list[float]) -> tuple[float, float, float]:
    """Hodges–Lehmann estimate of the ratio with its exact 95 % signed-rank interval."""
    logs = [math.log(r) for r in ratios]
    walsh = sorted(
        (a + b) / 2 for i, a in enumerate(logs) for b in logs[i:]
    )
    cut = signed_rank_cut(len(logs))
    low, high = walsh[max(0, cut - 1)] if cut else walsh[0], walsh[-max(1, cut)]
    return math.exp(statistics.median(walsh)), math.exp(low), math.exp(high)


def row(name: str, found: list[tuple], bar: bool) -> Row:
    ratio, low, high = interval([f[0] for f in found])
    cpu, cpu_low, cpu_high = interval([f[1] for f in found])
    more = statistics.median(f[2] for f in found)
    cells = [f"{ratio:.3f}", f"{low:.3f}–{high:.3f}", f"{cpu:.3f}"]
    cells += [f"{cpu_low:.3f}–{cpu_high:.3f}", str(len(found)), f"{more:+.2f}"]
    data = {"ratio": ratio, "low": low, "high": high, "more_s": more}
    data |= {"cpu": cpu, "cpu_low": cpu_low, "cpu_high": cpu_high}
    result = Row(name, cells, {**data, "ratios": [f[0] for f in found]})
    if bar:
        result.bar, result.passed = f"high ≤ {BAR}", high <= BAR
        alone = [f[3] for f in found]
        result.noisy = max(alone) > 1.1 * min(alone)
    return result


def loop() -> Table:
    table = Table(
        "torchloop",
        f"CPU torch training, DataLoader with a worker, {BATCHES} batches: loop time "
        "against alone",
        ["ratio", "95 % interval", "CPU", "95 % interval", "pairs", "start, end s"],
    )
    python, why = interpreter()
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as folder:
        place = Path(folder) / "run"

        def clean() -> None:
            subprocess.run(["rm", "-rf", place], check=False)

        ours = [SONDE, "run", "-q", "-o", place, "--", python]
        try:
            run([python])  # files are in memory from here on
            found = in_turn([python], ours, PAIRS, clean)
            table.rows.append(row("Sonde, default level", found, bar=True))
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            table.rows.append(Row("Sonde, default level", [], void=str(error)))
        for name, command in commands(python, Path(folder) / "out").items():
            table.rows.append(peer_row(name, python, command, why, clean))
    table.note = (
        "ratio: wall time of the loop with over alone, in turn; CPU: the same of the CPU "
        "time of its process. start, end: seconds more around the loop (median). Peers at their defaults; py-spy with -s, to see the "
        "worker too, which the others but memray and Scalene do not."
    )
    return table


def peer_row(name: str, python: str, command: list, why: str, clean) -> Row:
    if why:
        return Row(name, [], skipped=why)
    try:
        return row(name, in_turn([python], command, PEER_PAIRS, clean), bar=False)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        return Row(name, [], skipped=f"it failed: {error}")
