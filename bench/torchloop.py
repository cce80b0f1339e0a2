"""A whole CPU training loop of torch: alone, under `sonde run`, under other profilers.

Two ways. Pairs of processes, one alone and one under the profiler (livepair.py), is how
peers can be measured; processes of the same program differ by some percent each time, so
it takes hundreds of them to tell one percent. Sonde alone can be taken out of a running
process and put back (torch_switch.py): each process is compared with itself.
"""

from __future__ import annotations

import json
import math
import os
import queue
import shutil
import statistics
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from livepair import WARM_S, Pair, interval, run_pair
from places import BUILD, QUICK, ROOT, SONDE, Failed, environment
from tables import Row, Table

LOOP = ROOT / "bench" / "torch_train.py"
PAIRS, BLOCKS = (8, 1) if QUICK else (24, 2)
PEER_PAIRS, PEER_BLOCKS = (1, 1) if QUICK else (2, 1)
BAR = 1.02
SETTLED_S = 13.0  # Sonde looks less closely when a run is older than 10 s
# Of torch_switch.py: processes, and in each so many windows with and without Sonde. Pairs of
# windows differ by 3 %, whether they last an eighth of a second or three times as long: so
# many short ones, but no shorter than that a supervisor that was let go has caught up in
# the quarter that is left out.
SWITCHED = ROOT / "bench" / "torch_switch.py"
PROCESSES = int(os.environ.get("BENCH_PROCESSES", 6 if QUICK else 20))
WINDOWS = 90
PHASE = f"0.25:{WINDOWS}:off,on"
LEAST_CORES = 8  # from there on several at once, with two cores each
# The Python layer stays when all else is switched off: its part of the main process's CPU
# time then, by samples (perf, 9 kHz: 0.15 %), is added to what switching shows.
LAYER = 0.002
LEAST = 6  # pairs, for an interval of 95 % to exist
SPREAD = 0.015  # the loop against itself should not move by more


def interpreter() -> tuple[str, str]:
    """Debian's Python with torch and the peers; or Debian's alone and why."""
    if "BENCH_PYTHON" in os.environ:
        return os.environ["BENCH_PYTHON"], "BENCH_PYTHON"
    if os.environ.get("BENCH_PEERS", "1") == "0":
        return "/usr/bin/python3", "BENCH_PEERS=0"
    made = subprocess.run(
        [ROOT / "tools" / "venv", "bench"], check=False, capture_output=True, text=True
    )
    if made.returncode == 0:
        return made.stdout.strip(), ""
    return "/usr/bin/python3", made.stderr.strip().splitlines()[-1]


def peers(python: str, out: Path) -> dict[str, list[object]]:
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


# Left to itself glibc gives the top of the heap back and takes it again in every step, or
# in none: what happens to lie there decides, in each process anew. That is 7 to 970 page
# faults a step of 2 µs each, 12 % more or less of the step, with a profiler or without.
# Both sides keep their memory instead.
KEEP_MEMORY = {
    "MALLOC_TRIM_THRESHOLD_": str(1 << 34),
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),  # the most it takes
}
AS_IT_COMES = os.environ.get("BENCH_MALLOC", "") == "as-it-comes"


def same_for_both(number: int) -> dict[str, str]:
    """The hashes of a pair's two programs are the same, from pair to pair others."""
    kept = {} if AS_IT_COMES else KEEP_MEMORY
    return environment(OMP_NUM_THREADS="1", PYTHONHASHSEED=str(number + 1), **kept)


def in_turn(
    alone: list[object],
    other: list[object],
    out: Path,
    pairs: int,
    blocks: int,
    warm_s: float = WARM_S,
) -> list[Pair]:
    found = []
    for i in range(pairs):
        shutil.rmtree(out, ignore_errors=True)
        commands = [[*alone, LOOP], [*other, LOOP]]
        found.append(run_pair(commands, same_for_both(i), blocks, i, warm_s))
    return found


def row(name: str, found: list[Pair]) -> Row:
    ratio, low, high = interval([p.ratio for p in found])
    middle, *_ = interval([p.median for p in found])
    cpu, *_ = interval([p.cpu for p in found])
    around = statistics.median(p.around_s for p in found)
    between = f"{low:.3f}–{high:.3f}" if len(found) >= LEAST else ""
    cells = [f"{ratio:.3f}", between, f"{middle:.3f}", f"{cpu:.3f}"]
    cells += [str(len(found)), f"{around:+.2f}"]
    data = {"ratio": ratio, "low": low, "high": high, "median": middle, "cpu": cpu}
    data |= {"around_s": around, "pairs": [vars(p) for p in found]}
    result = Row(name, cells, data)
    # Within one pair the processes stay the same: what moves there is the machine.
    within = [statistics.stdev(p.blocks) for p in found if len(p.blocks) > 1]
    result.noisy = bool(within) and statistics.median(within) > 0.05
    return result


def measured(
    name: str,
    python: str,
    command: list[object],
    out: Path,
    *,
    full: bool,
    warm_s: float = WARM_S,
) -> Row:
    counts = (PAIRS, BLOCKS) if full else (PEER_PAIRS, PEER_BLOCKS)
    return row(name, in_turn([python], command, out, *counts, warm_s))


def sonde_row(name: str, python: str, out: Path, warm_s: float) -> Row:
    command = [SONDE, "run", "-q", "-o", out, "--", python]
    try:
        result = measured(name, python, command, out, full=True, warm_s=warm_s)
    except RuntimeError as error:
        return Row(name, [], void=str(error))
    result.bar, result.passed = f"high ≤ {BAR}", result.data["high"] <= BAR
    return result


# ---- one process, with and without --------------------------------------------------


def detour() -> Path:
    """Built here: it is no part of the product."""
    made = BUILD / "bench" / "detour.so"
    source = ROOT / "bench" / "detour" / "detour.c"
    if not made.exists() or made.stat().st_mtime < source.stat().st_mtime:
        made.parent.mkdir(parents=True, exist_ok=True)
        words = ["cc", "-shared", "-fPIC", "-O2", "-o", made, source, "-ldl"]
        done = subprocess.run(words, check=False, capture_output=True, text=True)
        if done.returncode:
            raise Failed(done.stderr.strip().splitlines()[-1])
    return made


def pairs_of_cores() -> list[str]:
    """For a process's main thread and its worker; "" where there are few: as it comes."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < LEAST_CORES:
        return [""]
    # The last two are the supervisors'.
    return [f"{a},{b}" for a, b in zip(cores[:-2:2], cores[1:-2:2])]


def switched_once(python: str, out: Path, number: int, cores: str) -> dict:
    place = out.with_name(f"{out.name}-{number}")
    words = [SONDE, "run", "-q", "-o", place, "--", python, SWITCHED, detour()]
    words += [SETTLED_S, PHASE]
    done = subprocess.run(
        list(map(str, words)),
        check=False,
        capture_output=True,
        text=True,
        timeout=600,
        env={**same_for_both(number), "BENCH_CORES": cores},
    )
    shutil.rmtree(place, ignore_errors=True)
    if done.returncode:
        raise Failed((done.stderr.strip().splitlines() or ["it failed"])[-1])
    return json.loads(done.stdout.strip().splitlines()[-1])[0]


def switched_ratio(windows: dict) -> float:
    """With over without in one process: neighbouring windows, the outer tenths of their
    ratios left out (something else had the core)."""
    logs = sorted(math.log(a / b) for a, b in zip(windows["on"], windows["off"]))
    cut = len(logs) // 10
    return math.exp(statistics.fmean(logs[cut : len(logs) - cut]))


def switched_row(python: str, out: Path) -> Row:
    name = "Sonde, on and off in one process"
    places = queue.SimpleQueue()
    for cores in pairs_of_cores():
        places.put(cores)

    def one(number: int) -> dict:
        cores = places.get()
        try:
            return switched_once(python, out, number, cores)
        finally:
            places.put(cores)

    try:
        detour()
        with ThreadPoolExecutor(places.qsize()) as pool:
            answers = list(pool.map(one, range(PROCESSES)))
    except (Failed, ValueError, OSError, subprocess.TimeoutExpired) as error:
        return Row(name, [], void=str(error))
    ratios = [switched_ratio(windows) * (1 + LAYER) for windows in answers]
    ratio, low, high = interval(ratios)
    step = statistics.median(x for windows in answers for x in windows["off"])
    cells = [f"{ratio:.4f}", f"{low:.4f}–{high:.4f}", "", "", str(len(ratios)), ""]
    data = {"ratio": ratio, "low": low, "high": high, "layer": LAYER, "step_ms": step}
    row = Row(name, cells, data | {"processes": answers})
    row.bar, row.passed = f"high ≤ {BAR}", high <= BAR
    return row


def itself_row(python: str, out: Path) -> Row:
    name = "alone, against itself"
    try:
        result = measured(name, python, [python], out, full=True)
    except RuntimeError as error:
        return Row(name, [], void=str(error))
    low, high = result.data["low"], result.data["high"]
    result.bar = f"1 ± {SPREAD}"
    result.passed = 1 - SPREAD <= low <= 1 <= high <= 1 + SPREAD
    return result


def peer_row(name: str, python: str, command: list[object], out: Path, why: str) -> Row:
    if why:
        return Row(name, [], skipped=why)
    try:
        return measured(name, python, command, out, full=False)
    except RuntimeError as error:
        return Row(name, [], skipped=f"it failed: {error}")


def loop() -> Table:
    table = Table(
        "torchloop",
        "CPU torch training, DataLoader with a worker: time of a step, with over alone",
        ["ratio", "95 % interval", "median step", "CPU", "pairs", "start, end s"],
    )
    python, why = interpreter()
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as folder:
        out = Path(folder) / "out"
        if os.environ.get("BENCH_ITSELF", "0") != "0":
            table.rows.append(itself_row(python, out))
        table.rows.append(switched_row(python, out))
        if os.environ.get("BENCH_SWITCHED_ALONE", "0") != "0":
            return table
        table.rows.append(sonde_row("Sonde, default level", python, out, SETTLED_S))
        table.rows.append(sonde_row("the same, first seconds", python, out, WARM_S))
        for name, command in peers(python, out).items():
            table.rows.append(peer_row(name, python, command, out, why))
    table.note = (
        "On and off in one process, a process is one observation: all calls past "
        "libsonde-preload.so, the recorder paused and the supervisor standing still, against "
        f"everything on, in windows of a quarter of a second ({WINDOWS} each), the first "
        f"quarter of each left out. The Python layer stays: {LAYER:.1%} are added for it. "
        "BENCH_SWITCHED_ALONE=1 leaves it at that, BENCH_PROCESSES=… takes more of them, "
        "BENCH_PYTHON=… another interpreter. Rows below: "
        "both programs are alive and run in turns of a second, A B B A, with all "
        "their processes; a pair of processes is one observation, of "
        f"{2 * BLOCKS} turns each ({2 * PEER_BLOCKS} for peers). ratio: of mean step "
        "times, nothing left out; Hodges–Lehmann, exact signed-rank interval over pairs. "
        "median step: the same of medians. CPU: time of all processes of a side, the "
        "profiler's too, a step. start, end: seconds more around the loop. Peers at "
        "their defaults; py-spy with -s, to see the worker too, which the others but "
        "memray and Scalene do not. Sonde looks closely for ten seconds, then more "
        f"seldom: the first row begins after {SETTLED_S:.0f} s of training (both sides "
        "warm up together: its start and end say nothing), the second at once, as those "
        "of the peers. Both sides keep freed memory (KEEP_MEMORY): whether glibc gives it "
        "back is a lottery worth 12 % from process to process; BENCH_MALLOC=as-it-comes "
        "plays it. BENCH_ITSELF=1 adds the loop against itself."
    )
    return table
