# timeout: 300
"""The fold and recycle protocol, model-checked: tests/model/fold.pml.

spin goes through every interleaving of the recording threads, two folders and their
deaths. The protocol as it is must pass; each way of breaking it must be found.
SONDE_SOAK=1 adds the larger sizes (1 GiB of memory, minutes).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(os.environ.get("SONDE_SOURCE", Path(__file__).parents[2]))
MODEL = ROOT / "tests/model/fold.pml"

SIZES = [
    {"LANES": 1, "LAST": 3, "KILLS": 1},
    {"LANES": 1, "LAST": 2, "KILLS": 2},
]
if os.environ.get("SONDE_SOAK", "0") not in ("", "0"):
    SIZES += [
        {"LANES": 1, "LAST": 3, "KILLS": 2},
        {"LANES": 2, "LAST": 1, "KILLS": 1},
    ]

BROKEN = {
    "MARK_FIRST": "blocks are marked FOLDED before the commit",
    "COMMIT_FIRST": "the commit comes before the copies",
    "NO_REPAIR": "copies of a killed folder are not erased",
    "TOKEN_LATE": "a publisher makes itself known after writing copies",
    "NO_TOKEN": "a cache is believed by its commit number alone",
    "WRITE_TRUTH": "the copy that is the truth is written",
    "NO_LOCK": "two folders at once",
    "FREE_BEFORE_ZERO": "a block is free before it is zeroed",
    "NO_CARRY_CHECK": "what is counted is told by the block's state, not by the carry",
}


def check(directory: Path, *switches: str) -> str:
    """Runs spin and the program it makes; returns what that says."""
    if not shutil.which("spin"):
        pytest.skip("spin is not installed (tools/setup)")

    def run(*command: str) -> str:
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("spin", "-a", *switches, str(MODEL))
    run("gcc", "-O2", "-w", "-DSAFETY", "-DCOLLAPSE", "-o", "pan", "pan.c")
    text = run("./pan", "-m200000", "-w24")
    assert "max search depth too small" not in text
    assert "errors:" in text, text
    return text


@pytest.mark.parametrize("size", SIZES, ids=lambda s: "-".join(map(str, s.values())))
def test_no_kill_at_any_step_loses_an_event_or_counts_it_twice(tmp_path, size):
    text = check(tmp_path, *(f"-D{name}={value}" for name, value in size.items()))
    assert re.search(r"errors: 0\b", text), text
    states = int(re.search(r"(\d+) states, stored", text)[1])
    print(f"{size}: {states} states")
    assert states > 1_000_000
    # A folder or thread that never did something would prove nothing.
    assert re.search(r"unreached in proctype folder\n\t\(0 of", text), text
    assert re.search(r"unreached in proctype producer\n\t\(0 of", text), text


@pytest.mark.parametrize("switch", BROKEN)
def test_a_broken_protocol_is_found_out(tmp_path, switch):
    text = check(tmp_path, "-DKILLS=1", f"-D{switch}")
    assert "assertion violated" in text, f"not noticed: {BROKEN[switch]}"
