"""Many experiments: how fast they go in and are found, beside ChromaDB."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from places import DISK, QUICK, ROOT, Failed, environment, measure, new_directory, program
from tables import Row, Table

ROWS = 100_000 if QUICK else 1_000_000
QUERIES = 100 if QUICK else 300
# ChromaDB builds a graph over its vectors: the same million takes it the better part of an
# hour. It gets the same data and as many rows as it can take in this time.
PEER_SECONDS = float(os.environ.get("BENCH_CHROMA_SECONDS", "20" if QUICK else "240"))
PUTS_PER_S, P50_MS = 50_000, 20.0


def venv() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("SONDE_CHROMA") or cache / "sonde" / "chroma")


def disk(*places: Path) -> float:
    files = [p for place in places for p in ([place] if place.is_file() else place.rglob("*"))]
    return sum(p.stat().st_size for p in files if p.is_file())


def judged(wall: float, cpu: float, good) -> tuple[bool, bool]:
    """By the clock; when something else had the core, by CPU time, marked noisy."""
    return (True, False) if good(wall) else (good(cpu), True)


def ours(where: Path, table: Table) -> dict:
    a = measure(program("store"), rows=ROWS, queries=QUERIES, dir=where)
    index, store = disk(where / "index"), disk(*where.glob("sonde.db*"))
    for title, wall, cpu in (
        ("sonde: put", a["ingest_wall_s"], a["ingest_cpu_s"]),
        (
            "sonde: put and index",
            a["ingest_wall_s"] + a["index_wall_s"],
            a["ingest_cpu_s"] + a["index_cpu_s"],
        ),
    ):
        passed, noisy = judged(ROWS / wall, ROWS / cpu, lambda x: x >= PUTS_PER_S)
        cells = [f"{ROWS:,}", f"{ROWS / wall:,.0f}/s", f"{ROWS / cpu:,.0f}/s"]
        cells += ["", f"{(store + index) / ROWS:.0f} B", f"{a['ingest_rss_mb']:.0f} MB"]
        table.rows.append(
            Row(title, cells, a, f">= {PUTS_PER_S:,}/s", passed, noisy=noisy)
        )
    passed, noisy = judged(a["p50_wall_ms"], a["p50_cpu_ms"], lambda x: x <= P50_MS)
    cells = [f"{ROWS:,}", f"{a['p50_wall_ms']:.2f} ms", f"{a['p50_cpu_ms']:.2f} ms"]
    cells += ["1.000", "", f"{a['rss_mb']:.0f} MB"]
    table.rows.append(
        Row(
            "sonde: filter + 10 nearest, p50",
            cells,
            a,
            f"<= {P50_MS:.0f} ms",
            passed,
            noisy=noisy,
            void="" if a["wrong"] == 0 else "not exact",
        )
    )
    return a


def theirs(where: Path, table: Table) -> None:
    python = venv() / "bin" / "python"
    if os.environ.get("BENCH_PEERS", "1") == "0":
        table.rows.append(Row("ChromaDB", [], skipped="BENCH_PEERS=0"))
        return
    if not (venv() / "stamp").exists():
        table.rows.append(Row("ChromaDB", [], skipped="not installed: tools/setup"))
        return
    words = [python, ROOT / "bench/peers/chroma.py", where, ROWS, QUERIES, PEER_SECONDS]
    done = subprocess.run(
        list(map(str, words)), capture_output=True, text=True, env=environment(), timeout=3600
    )
    if done.returncode != 0:
        why = done.stderr.strip().splitlines()
        table.rows.append(Row("ChromaDB", [], skipped=(why or ["it failed"])[-1][:80]))
        return
    a = json.loads(done.stdout)
    name = f"ChromaDB {a['version']}"
    rows, wall, cpu = a["rows"], a["ingest_wall_s"], a["ingest_cpu_s"]
    cells = [f"{rows:,}", f"{rows / wall:,.0f}/s", f"{rows / cpu:,.0f}/s", ""]
    cells += [f"{a['disk_bytes'] / rows:.0f} B", f"{a['rss_mb']:.0f} MB"]
    table.rows.append(Row(f"{name}: add", cells, a))
    cells = [f"{rows:,}", f"{a['p50_wall_ms']:.2f} ms", f"{a['p50_cpu_ms']:.2f} ms"]
    cells += [f"{a['recall']:.3f}", "", f"{a['rss_mb']:.0f} MB"]
    table.rows.append(Row(f"{name}: the same, p50", cells, a))


def store() -> Table:
    table = Table(
        "store",
        f"Experiments: {ROWS:,} in, then a filter of two conditions and the ten most alike",
        ["rows", "wall", "cpu", "recall", "disk/row", "memory"],
        note="wall and cpu: the same by the clock and by CPU time of the process. Recall is "
        "against comparing everything. Sonde's memory counts mapped pages of the index.",
    )
    try:
        with new_directory(DISK) as where:
            where.mkdir()
            ours(where, table)
            theirs(where, table)
    except Failed as error:
        table.rows.append(Row("sonde", [], void=str(error)))
    return table
