"""Training steps of the reference nets beside torch's: same shapes, OpenBLAS in both."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from places import QUICK, environment, program
from tables import Row, Spread, Table

PYTHON = "/usr/bin/python3"  # Debian's, which has Debian's torch
MOST = 2.0
# family, hidden, layers, heads, nodes or tokens, batch, kind of messages where not gin
SHAPES = [
    ("graph_transformer", 256, 6, 8, 500, 1),
    ("graph_transformer", 64, 4, 4, 100, 8),
    ("graph_transformer", 32, 2, 4, 30, 4),  # small
    ("graph_transformer", 768, 2, 12, 100, 1),  # wide
    ("graph_transformer", 64, 2, 4, 2000, 1),  # many nodes
    *(("graph_transformer", 128, 2, 8, 200, 2, kind) for kind in ("gine", "gat", "gatedgcn", "pna")),
    ("gpt2", 256, 6, 8, 128, 4),
]


def steps_of(command: list, shape: tuple, threads: int, count: int) -> list[tuple[float, float]]:
    """Wall and processor milliseconds of each step."""
    family, *sizes = shape
    words = [*command, family, threads, count, *sizes]
    done = subprocess.run(
        list(map(str, words)),
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
        # Threads that wait by spinning would fight over two cores.
        env=environment(OPENBLAS_NUM_THREADS=str(threads), OMP_NUM_THREADS=str(threads)),
    )
    return [tuple(map(float, line.split())) for line in done.stdout.splitlines()]


def compare(shape: tuple, threads: int) -> Row:
    passes, count = (2, 3) if QUICK else (4, 6)
    ours: list[tuple[float, float]] = []
    theirs: list[tuple[float, float]] = []
    for _ in range(passes):
        ours += steps_of([program("model_ref")], shape, threads, count)
        theirs += steps_of([PYTHON, Path(__file__).with_name("model_torch.py")], shape, threads, count)
    busy = os.getloadavg()[0] > os.cpu_count()
    wall = [min(w for w, _ in side) for side in (ours, theirs)]
    cpu = [min(c for _, c in side) for side in (ours, theirs)]
    # On a busy machine the processor time says more than the wall time.
    ratio = cpu[0] / cpu[1] if busy else wall[0] / wall[1]
    family, hidden, layers, heads, n, batch, *kind = shape
    spread = Spread.of([w for w, _ in ours])
    name = f"{family} d={hidden} L={layers} n={n} b={batch}{' '.join(['', *kind])}, {threads} thread{'s' * (threads > 1)}"
    cells = [
        f"{wall[0]:.1f} ms",
        f"{wall[1]:.1f} ms",
        f"{wall[0] / wall[1]:.2f}",
        f"{cpu[0] / cpu[1]:.2f}",
    ]
    data = {"ours_ms": wall[0], "torch_ms": wall[1], "wall_ratio": wall[0] / wall[1],
            "cpu_ratio": cpu[0] / cpu[1], "median_ms": spread.median}  # fmt: skip
    return Row(name, cells, data, f"≤ {MOST}", ratio <= MOST, noisy=busy)


def steps() -> Table:
    table = Table(
        "model",
        "A training step of the reference nets beside CPU torch",
        ["Sonde's net", "torch", "wall ×", "CPU ×"],
    )
    found = subprocess.run([PYTHON, "-c", "import torch"], capture_output=True, check=False)
    if found.returncode != 0:
        table.rows.append(Row("torch", [], skipped=f"{PYTHON} has no torch"))
        return table
    for shape in SHAPES[: 1 if QUICK else None]:
        for threads in (1, 2):
            try:
                table.rows.append(compare(shape, threads))
            except (subprocess.SubprocessError, OSError) as error:
                table.rows.append(Row(str(shape), [], void=str(error)))
    table.note = (
        "The least of several interleaved passes. On a machine with more runnable threads "
        "than cores the bar is held against processor time, and the row is marked noisy."
    )
    return table
