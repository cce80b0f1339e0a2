"""The gate: how often it is right, simulated cell by cell and end to end."""

from __future__ import annotations

import json
import math
import subprocess
import tempfile
from pathlib import Path

from places import QUICK, SONDE, environment, program
from tables import Row, Table

GATES = 500 if QUICK else 2000
SAME, SLOWER = (20, 10) if QUICK else (100, 50)
ROUNDS = 8000  # some 15 ms
MOST_ALARMS, LEAST_FOUND = 0.01, 0.95


def interval(hits: int, n: int) -> tuple[float, float]:
    """Wilson's, 95 %."""
    z, p = 1.96, hits / n
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return max(0.0, middle - half), min(1.0, middle + half)


def share(hits: int, n: int) -> str:
    low, high = interval(hits, n)
    return f"{hits / n:.2%} [{low:.2%}, {high:.2%}]"


def simulate() -> list[dict]:
    done = subprocess.run(
        [program("gate_sim"), f"gates={GATES}"], check=True, capture_output=True, text=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def simulated(table: Table) -> None:
    cells = [c for c in simulate() if c["paired"]]
    alarms = [c for c in cells if c["effect"] <= 0]
    worst = max(alarms, key=lambda c: c["fail"])
    table.rows.append(
        Row(
            f"false alarms, worst of {len(alarms)} cells",
            [f"{GATES:,}", share(worst["fail"], worst["gates"]), where(worst)],
            {"cells": cells},
            f"<= {MOST_ALARMS:.0%}",
            worst["fail"] / worst["gates"] <= MOST_ALARMS,
        )
    )
    found = [c for c in cells if c["effect"] == 0.3]
    for title, group in (
        ("30 % slower found, noise up to 10 %", [c for c in found if c["noise"] <= 0.10]),
        ("30 % slower found, noise 15 %", [c for c in found if c["noise"] > 0.10]),
    ):
        worst = min(group, key=lambda c: c["fail"])
        table.rows.append(
            Row(
                f"{title}, worst of {len(group)}",
                [f"{GATES:,}", share(worst["fail"], worst["gates"]), where(worst)],
                {},
                f">= {LEAST_FOUND:.0%}",
                worst["fail"] / worst["gates"] >= LEAST_FOUND,
            )
        )


def where(cell: dict) -> str:
    return f"noise {cell['noise']:.0%}, drift {cell['drift']:.0%}, tail {cell['tail']:.0%}"


def gate(folder: Path, rounds: int, metric: str) -> str:
    env = environment(SONDE_DIR=str(folder / ".sonde"))
    words = [SONDE, "check", "-q", "--json", "-b", "good", "-m", metric, "--", "./spin", rounds]
    done = subprocess.run(
        list(map(str, words)), capture_output=True, text=True, cwd=folder, env=env
    )
    return {0: "pass", 1: "fail", 3: "inconclusive"}.get(done.returncode, "error")


def real(table: Table, metric: str) -> None:
    with tempfile.TemporaryDirectory(prefix="sonde-gates-") as name:
        folder = Path(name)
        (folder / "spin").write_bytes(program("spin").read_bytes())
        (folder / "spin").chmod(0o755)
        env = environment(SONDE_DIR=str(folder / ".sonde"))
        words = [SONDE, "baseline", "set", "good", "-n", 2, "-m", metric, "--", "./spin", ROUNDS]
        subprocess.run(list(map(str, words)), check=True, capture_output=True, cwd=folder, env=env)
        same = [gate(folder, ROUNDS, metric) for _ in range(SAME)]
        slower = [gate(folder, int(ROUNDS * 1.3), metric) for _ in range(SLOWER)]
    for title, verdicts, word, bar, good in (
        ("the same program fails", same, "fail", f"<= {MOST_ALARMS:.0%}",
         lambda x: x <= MOST_ALARMS),
        ("30 % slower fails", slower, "fail", f">= {LEAST_FOUND:.0%}",
         lambda x: x >= LEAST_FOUND),
    ):  # fmt: skip
        hits, n = verdicts.count(word), len(verdicts)
        table.rows.append(
            Row(
                f"real gates by {metric}: {title}",
                [str(n), share(hits, n), f"{verdicts.count('inconclusive')} unsure"],
                {"verdicts": verdicts},
                bar,
                good(hits / n),
                void="" if "error" not in verdicts else "a gate could not be run",
            )
        )


def gates() -> Table:
    table = Table(
        "gate",
        "The gate, threshold 20 %: how often it is right",
        ["gates", "share [95 %]", "where"],
        note="Simulated cells: noise 1 to 15 %, drift 0 and 30 %, one run in ten up to three "
        "times as long. Real ones: sonde check from start to end, 8 to 20 pairs.",
    )
    simulated(table)
    real(table, "cpu")
    real(table, "wall")
    return table
