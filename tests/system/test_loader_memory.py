# timeout: 300
"""Pages that forked workers copy, against programs that touch a known number of them."""

import subprocess
from pathlib import Path

import pytest
from sonde_test import BUILD, run

PYTHON = "/usr/bin/python3"
PROG = Path(__file__).resolve().parent / "progs" / "loader_copies.py"
MIB = 64
# What the interpreter and torch write to of their own, in both workers together.
OWN = 16


def has_torch():
    found = list((BUILD / "python" / "sonde").glob("_sonde.*.so"))
    done = subprocess.run([PYTHON, "-c", "import torch, numpy"], capture_output=True, check=False)
    return bool(found) and done.returncode == 0


pytestmark = pytest.mark.skipif(
    not has_torch(), reason="no Python package, or no torch to watch"
)


@pytest.mark.parametrize(
    ("what", "least", "most"),
    [("touch", MIB - 4, MIB + OWN), ("read", 0, OWN), ("allocate", 0, OWN)],
)
def test_workers_say_what_they_copied(tmp_path, what, least, most):
    (loader,) = run(tmp_path / "run", PYTHON, PROG, what).report()["loaders"]
    copied = [w["copied_mb"] for w in loader["workers"]]
    assert len(copied) == 2 and None not in copied
    assert least <= sum(copied) <= most
    private = sum(w["private_mb"] for w in loader["workers"])
    assert private >= sum(copied)
    assert what == "read" or private >= MIB
    assert loader["objects"] == "Block.records: list of 20,000 tuple"
