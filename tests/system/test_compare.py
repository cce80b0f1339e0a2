# labels: no_asan
"""`sonde compare`: runs side by side, with what differed between them."""

import csv
import io
import json

import pytest
from sonde_test import SONDE, sonde


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """The demo's training program, with two batch counts and two seeds."""
    place = tmp_path_factory.mktemp("compare")
    for name, seed in (("one", 1), ("two", 2), ("again", 1)):
        sonde("demo", "-q", "--steps", 120, "--seed", seed, "--name", name, cwd=place)
    return place


def compare(store, *arguments):
    return json.loads(sonde("compare", *arguments, "--json", cwd=store).stdout)


def rows(document, section):
    return {r["name"]: r["runs"] for r in document["rows"] if r["section"] == section}


def test_what_differs_comes_first_and_is_complete(store):
    found = compare(store, "one", "two")
    assert {(d["group"], d["name"]) for d in found["differences"]} >= {
        ("parameter", "seed"),
        ("program", "command"),
    }
    assert next(d for d in found["differences"] if d["name"] == "seed")["values"] == [
        "1",
        "2",
    ]
    text = sonde("compare", "one", "two", cwd=store).stdout
    assert text.index("DIFFERS") < text.index("VERDICT") < text.index("step time")


def test_numbers_are_those_of_the_reports(store):
    found = compare(store, "one", "two", "again")
    assert [r["name"] for r in found["runs"]] == ["one", "two", "again"]
    for i, name in enumerate(["one", "two", "again"]):
        told = json.loads(sonde("report", name, "--json", cwd=store).stdout)
        summary = rows(found, "summary")
        assert summary["duration"][i]["value"] == pytest.approx(
            told["run"]["duration_s"] * 1000, rel=1e-3
        )
        assert summary["allocations"][i]["value"] == told["allocations"]["count"]
        steps = told["summary"]["step_ms"]["count"] + 1
        for phase in told["phases"]:
            shown = rows(found, "phases").get(phase["phase"])
            if shown:
                assert shown[i]["value"] == pytest.approx(
                    phase["total_s"] * 1000 / steps, rel=1e-3, abs=1e-3
                )


def test_the_same_program_with_the_same_seed_is_the_same(store):
    """What does not depend on the clock is equal; nothing about it may be said to differ."""
    found = compare(store, "one", "again")
    assert rows(found, "metrics")["loss"][1]["ratio"] == 1
    assert rows(found, "summary")["allocations"][1]["ratio"] == 1
    assert all(d["group"] not in ("program", "parameter") for d in found["differences"])


def test_csv_is_read_by_pythons_own_parser(store):
    text = sonde("compare", "one", "two", "--format", "csv", cwd=store).stdout
    table = list(csv.DictReader(io.StringIO(text)))
    assert {"section", "name", "unit", "one", "two", "ratio", "low", "high"} == set(
        table[0]
    ) - {"per"}
    assert len(table) == len(compare(store, "one", "two")["rows"])


@pytest.mark.parametrize("width", [60, 80, 200])
def test_no_line_is_wider_than_asked(store, width):
    text = sonde("compare", "one", "two", "again", "--width", width, "--full", cwd=store)
    assert all(len(line) <= width for line in text.stdout.splitlines())


def test_flops_where_the_program_told_them(tmp_path):
    for name, flops in (("small", "2e9"), ("large", "6e9"), ("silent", None)):
        told = ["--param", f"flops_per_step={flops}"] if flops else []
        sonde("run", "-q", "--name", name, *told, "--", SONDE, "demo", "--train", "--steps", 5,
              cwd=tmp_path)
    found = rows(compare(tmp_path, "small", "large"), "summary")
    assert [c["value"] for c in found["FLOPs per step"]] == [2e9, 6e9]
    assert found["FLOPs per step"][1]["ratio"] == pytest.approx(3)
    text = sonde("compare", "small", "large", cwd=tmp_path).stdout
    assert any(l.split()[:3] == ["FLOPs", "per", "step"] and "2 G" in l and "6 G" in l
               for l in text.splitlines())
    table = sonde("compare", "small", "large", "--format", "csv", cwd=tmp_path).stdout
    assert '"FLOPs per step","flop"' in table
    mixed = rows(compare(tmp_path, "small", "silent"), "summary")["FLOPs per step"]
    assert mixed[1] == {"value": None, "ratio": None, "low": None, "high": None}
    assert "FLOPs per step" not in rows(compare(tmp_path, "silent", "silent"), "summary")


def test_a_page_compares_them_too(store, tmp_path):
    page = tmp_path / "both.html"
    sonde("compare", "one", "two", "--format", "html", "-o", page, cwd=store)
    text = page.read_text()
    assert all(f'"name":"{name}"' in text for name in ("one", "two"))
    assert text.startswith("<!doctype html>")
    sonde("compare", "--format", "html", "-o", page, cwd=store)  # the last two
    assert page.stat().st_size > 100000


def test_without_names_the_last_two_are_compared(store):
    found = compare(store)
    assert [r["name"] for r in found["runs"]] == ["two", "again"]


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["one"], "cannot be compared"),
        (["one", "nobody"], "nobody"),
        (["one"] * 17, "at most 16"),
        (["one", "two", "--format", "xml"], "xml"),
    ],
)
def test_mistakes_are_explained(store, arguments, words):
    done = sonde("compare", *arguments, cwd=store, check=False)
    assert done.returncode == 2 and words in done.stderr and not done.stdout
