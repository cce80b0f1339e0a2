"""docs/capabilities.md: every id of the requirements has its row, and what a row names is
there: tests, functions of the headers, names of the package, verbs and their options."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

ROOT = Path(os.environ.get("SONDE_SOURCE", Path(__file__).parents[2]))
TABLE = ROOT / "docs/capabilities.md"
# The requirements, which are kept beside the repository.
ASKED = {"A": 12, "B": 13, "C": 12, "D": 14, "E": 9}
REQUIREMENTS = ROOT.parent / "shared/CAPABILITIES.md"
CELLS = ("id", "c", "python", "command", "test", "state")


def read_rows() -> dict[str, dict[str, str]]:
    rows: dict[str, dict[str, str]] = {}
    for line in TABLE.read_text().splitlines():
        if not re.match(r"\| [A-E]\d+ ", line):
            continue
        cells = [c.strip() for c in re.split(r"(?<!\\)\|", line.strip())[1:-1]]
        assert len(cells) == len(CELLS), line
        name = cells[0].split()[0]
        assert name not in rows, f"{name} is there twice"
        rows[name] = dict(zip(CELLS, cells))
    return rows


ROWS = read_rows()
IDS = [f"{letter}{n}" for letter, count in ASKED.items() for n in range(1, count + 1)]


def named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_every_id_has_its_row():
    assert sorted(ROWS) == sorted(IDS)


def test_the_ids_are_those_of_the_requirements():
    if not REQUIREMENTS.exists():
        pytest.skip("the requirements are not beside the repository")
    asked = re.findall(r"^\| ([A-E]\d+) \|", REQUIREMENTS.read_text(), re.M)
    assert sorted(asked) == sorted(IDS)


def is_test(name: str) -> bool:
    if name.startswith("py/"):
        return (ROOT / "tests/python" / name[3:]).is_file()
    if name.startswith("unit/"):
        return any((ROOT / "tests").glob(f"{name}_test.c"))
    if name.startswith("tests/"):
        return (ROOT / name).is_file()
    if name.startswith("make "):
        return bool(re.search(rf"^{name[5:]}:", (ROOT / "Makefile").read_text(), re.M))
    return (ROOT / "tests/system" / name).is_file()


@pytest.mark.parametrize("name", IDS)
def test_what_is_said_to_prove_it_is_there(name):
    row = ROWS[name]
    tests = [t for t in named(row["test"]) if not is_test(t)]
    assert tests == []
    assert named(row["test"]) or row["state"] == "not yet"
    calls = row["c"] + row["python"] + row["command"]
    assert named(calls) or row["state"] == "not yet"


def c_names(cell: str) -> list[str]:
    """`sonde_span_*`, `sonde_session_start/stop`: as much as is a name."""
    found = [re.match(r"(?:struct )?((?:sonde|SONDE)_\w+)", n) for n in named(cell)]
    return [m[1] for m in found if m]


def test_functions_are_in_the_headers():
    headers = "".join(p.read_text() for p in (ROOT / "include/sonde").glob("*.h"))
    names = {n for row in ROWS.values() for n in c_names(row["c"])}
    assert len(names) > 20
    assert sorted(n for n in names if not re.search(rf"\b{n}", headers)) == []


def test_names_are_in_the_package():
    package = "".join(
        p.read_text() for p in (ROOT / "python/sonde").rglob("*.py*") if p.is_file()
    )
    names = {
        m[1]
        for row in ROWS.values()
        for n in named(row["python"])
        if (m := re.match(r"@?(?:[\w]+\.)*([A-Za-z_]\w+)", n))
    }
    assert len(names) > 40
    assert sorted(n for n in names if not re.search(rf"\b{n}", package)) == []


def test_verbs_have_the_options_they_are_named_with():
    parts = re.split(r"^## (\w+)$", (ROOT / "docs/reference-cli.md").read_text(), flags=re.M)
    reference = dict(zip(parts[1::2], parts[2::2]))
    wrong = []
    for name, row in ROWS.items():
        verb = ""
        for command in named(row["command"]):
            said = re.match(r"sonde (\w+)", command)  # `--x` alone is of the verb before
            verb = said[1] if said else verb
            options = re.findall(r"(?<![\w-])--[a-z][\w-]+", command)
            if said and verb not in reference:
                wrong.append((name, verb))
            else:
                text = reference.get(verb, "")
                wrong += [(name, verb, o) for o in options if o not in text]
    assert wrong == []
