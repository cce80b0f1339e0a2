"""BENCH_PEERS=0: a benchmark installs no peer and runs none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(os.environ.get("SONDE_SOURCE", Path(__file__).parents[2]))
ASK = """
import sys
sys.path.insert(0, "bench")
import experiments
from pathlib import Path
from tables import Table
table = Table("store", "", [])
experiments.theirs(Path(sys.argv[1]), table)
(row,) = table.rows
print(row.skipped)
"""


def theirs(tmp_path: Path, **changes: str) -> tuple[str, bool]:
    """What the table says of ChromaDB, and whether its Python was started."""
    python, mark = tmp_path / "bin" / "python", tmp_path / "started"
    python.parent.mkdir()
    (tmp_path / "stamp").touch()
    python.write_text(f"#!/bin/sh\necho yes > '{mark}'\necho 'no such thing' >&2\nexit 1\n")
    python.chmod(0o700)
    env = {k: v for k, v in os.environ.items() if k != "BENCH_PEERS"}
    env.update(SONDE_CHROMA=str(tmp_path), PYTHONDONTWRITEBYTECODE="1", **changes)
    done = subprocess.run([sys.executable, "-c", ASK, str(tmp_path)], cwd=ROOT, env=env, check=True,
                          capture_output=True, text=True)  # fmt: skip
    return done.stdout.strip(), mark.exists()


def test_chroma_is_left_alone_when_peers_are_not_wanted(tmp_path):
    assert theirs(tmp_path, BENCH_PEERS="0") == ("BENCH_PEERS=0", False)


def test_chroma_is_measured_otherwise(tmp_path):
    assert theirs(tmp_path) == ("no such thing", True)
