"""The gate: how often it is right, simulated cell by cell and end to end."""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

from places import BUILD, QUICK, SONDE, environment, program
from tables import Row, Table

GATES = 500 if QUICK else 2000
SAME, SLOWER = (20, 10) if QUICK else (100, 50)
ROUNDS = 8000  # some 15 ms
MOST_ALARMS, LEAST_FOUND = 0.01, 0.95


def below(hits: int, n: int, p: float) -> float:
    """P(X <= hits) of n tries that succeed with probability p."""
    if hits >= n or p <= 0:
        return 1.0
    if p >= 1:
        return 0.0
    terms = (
        math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
        + k * math.log(p) + (n - k) * math.log1p(-p)
        for k in range(hits + 1)
    )  # fmt: skip
    return min(1.0, math.fsum(map(math.exp, terms)))


def solve(wanted: float, hits: int, n: int) -> float:
    """The p with P(X <= hits) = wanted: it falls as p grows."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if below(hits, n, middle) > wanted else (low, middle)
    return (low + high) / 2


def interval(hits: int, n: int) -> tuple[float, float]:
    """Clopper and Pearson's, 95 %: exact, never too narrow."""
    low = 0.0 if hits == 0 else solve(0.975, hits - 1, n)
    high = 1.0 if hits == n else solve(0.025, hits, n)
    return low, high


def share(hits: int, n: int) -> str:
    low, high = interval(hits, n)
    return f"{hits / n:.2%} [{low:.2%}, {high:.2%}]"


def simulate() -> list[dict]:
    done = subprocess.run(
        [program("gate_sim"), f"gates={GATES}"], check=True, capture_output=True, text=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


PAIRED = [
    ("same: fails", 0, "fail"), ("−10 %: fails", -0.1, "fail"), ("+10 %: fails", 0.1, "fail"),
    ("+30 %: fails", 0.3, "fail"), ("+30 %: passes", 0.3, "pass"), ("+50 %: fails", 0.5, "fail"),
]  # fmt: skip
STORED = [
    ("same: fails", 0, "fail"), ("+30 %: fails", 0.3, "fail"), ("+30 %: passes", 0.3, "pass"),
    ("+100 %: fails", 1.0, "fail"),
]  # fmt: skip


def per_cent(hits: int, n: int) -> str:
    low, high = interval(hits, n)
    return f"{100 * hits / n:.1f} [{100 * low:.1f}–{100 * high:.1f}]"


def lines(cells: list[dict], columns: list[tuple[str, float, str]], runs: bool) -> list[str]:
    """A table of docs/gate.md: a row per kind of machine."""
    titles = ["noise", "drift", "tail", *(c[0] for c in columns), *(["runs, same"] * runs)]
    out = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    for kind in dict.fromkeys((c["noise"], c["drift"], c["tail"]) for c in cells):
        row = {c["effect"]: c for c in cells if (c["noise"], c["drift"], c["tail"]) == kind}
        words = [f"{x:.0%}" for x in kind]
        words += [per_cent(row[e][verdict], row[e]["gates"]) for _, e, verdict in columns]
        words += [f"{row[0]['runs']:.0f}"] * runs
        out.append("| " + " | ".join(words) + " |")
    return out


def write_tables(cells: list[dict]) -> Path:
    paired = [c for c in cells if c["paired"]]
    stored = [c for c in cells if not c["paired"]]
    text = ["**In turn (8, 12 or 20 pairs)**", "", *lines(paired, PAIRED, True), "",
            "**Against 20 stored samples, 20 runs now**", "", *lines(stored, STORED, False)]  # fmt: skip
    path = BUILD / "bench" / "gate.md"
    path.write_text("\n".join(text) + "\n")
    return path


def simulated(table: Table) -> None:
    every = simulate()
    table.note += f" All cells: {write_tables(every)}."
    cells = [c for c in every if c["paired"]]
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


def gate(folder: Path, rounds: int, metric: str) -> dict:
    env = environment(SONDE_DIR=str(folder / ".sonde"))
    words = [SONDE, "check", "-q", "--json", "-b", "good", "-m", metric, "--", "./spin", rounds]
    done = subprocess.run(
        list(map(str, words)), check=False, capture_output=True, text=True, cwd=folder, env=env
    )
    answer = json.loads(done.stdout) if done.returncode in (0, 1, 3) else {"verdict": "error"}
    keys = "ratio", "low", "high"
    answer.update({k: answer["metrics"][0][k] for k in keys} if "metrics" in answer else {})
    kept = ("verdict", "count", "runs", "elapsed_s", *keys)
    return {k: answer.get(k) for k in kept}


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
    for title, gates, bar, good in (
        ("the same program fails", same, f"<= {MOST_ALARMS:.0%}", lambda x: x <= MOST_ALARMS),
        ("30 % slower fails", slower, f">= {LEAST_FOUND:.0%}", lambda x: x >= LEAST_FOUND),
    ):
        verdicts = [g["verdict"] for g in gates]
        hits, n = verdicts.count("fail"), len(verdicts)
        took = statistics.median(g["elapsed_s"] or 0 for g in gates)
        table.rows.append(
            Row(
                f"real gates by {metric}: {title}",
                [
                    str(n),
                    share(hits, n),
                    f"{verdicts.count('inconclusive')} unsure, {took:.1f} s each, "
                    f"load {os.getloadavg()[0]:.0f}",
                ],
                {"gates": gates},
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
