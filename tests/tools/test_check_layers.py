"""tools/check_layers on a tree that breaks the law in every way, and on one that does not."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(os.environ.get("SONDE_SOURCE", Path(__file__).parents[2]))

# file -> its include, and what must be said about it; None if it is right
CASES: list[tuple[str, str, str | None]] = [
    ("base/a.c", '"base/a.h"', None),
    ("base/b.c", '"num/sum.h"', "num stands above base"),
    ("num/a.c", '"base/a.h"', None),
    ("trace/a.c", '"num/loghist.h"', None),
    ("trace/b.c", '"record/ring.h"', "record stands above trace"),
    ("record/a.c", '"model/cost.h"', "record and model are siblings"),
    ("record/b.c", '  "trace/format.h"', None),
    ("capture/gpu/a.c", '"capture/gpu/a.h"', None),
    ("capture/gpu/b.c", '"capture/monitor/x.h"', "capture/gpu and capture/monitor are siblings"),
    ("launch/a.c", '"record/ring.h"', None),
    ("launch/b.c", '"capture/gpu/a.h"', None),
    ("store/a.c", '"record/ring.h"', "from store on nobody includes record"),
    ("store/b.c", '"trace/reader.h"', None),
    ("analyse/a.c", '"capture/gpu/a.h"', "from store on nobody includes capture/gpu"),
    ("cli/a.c", '"pipeline/p.h"', "from store on nobody includes pipeline"),
    ("cli/b.c", '"launch/spawn.h"', None),
    ("cli/c.c", "<sonde/sonde.h>", None),
    ("cli/d.c", '"demo/train.h"', None),
    ("present/report/a.c", '"present/export/csv.h"', "present/report and present/export are siblings"),
    ("present/report/b.c", '"analyse/rules.h"', None),
    ("demo/a.c", '"base/buf.h"', "demo includes only itself"),
    ("demo/b.c", "<sonde/sonde.h>", None),
    ("base/c.c", '"a.h"', 'write the path from src/, not "a.h"'),
    ("base/d.c", '"../num/sum.h"', "write the path from src/"),
    ("base/e.c", '"num/../num/sum.h"', "write the path from src/"),
    ("stray/a.c", '"base/a.h"', "this folder is not in src/LAYERS"),
]


def check(root: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "tools/check_layers"), str(root)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    shutil.copy(ROOT / "src/LAYERS", tmp_path / "src/LAYERS")
    return tmp_path


def add(tree: Path, name: str, include: str) -> None:
    file = tree / "src" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"/* a comment */\n#include {include}\n")


@pytest.mark.parametrize(("name", "include", "complaint"), CASES)
def test_each_include_is_judged(tree: Path, name: str, include: str, complaint: str | None) -> None:
    add(tree, name, include)
    result = check(tree)
    if complaint is None:
        assert (result.returncode, "1 files keep the law" in result.stdout) == (0, True)
    else:
        assert result.returncode == 1
        assert re.search(rf"src/{re.escape(name)}:[12]: ", result.stdout)
        assert complaint in result.stdout


def test_every_violation_is_listed_at_once(tree: Path) -> None:
    for name, include, _ in CASES:
        add(tree, name, include)
    broken = sum(complaint is not None for _, _, complaint in CASES)
    assert len(check(tree).stdout.splitlines()) == broken


def test_a_law_that_cannot_be_read_is_an_error(tree: Path) -> None:
    (tree / "src/LAYERS").write_text("levle base\n")
    result = check(tree)
    assert result.returncode != 0
    assert "LAYERS:1: cannot understand" in result.stderr
