# labels: no_asan
"""The document inside the HTML report: right, small, discreet, whatever the traces say."""

import json
import os
import random

import pytest
from html_test import LIMIT_BYTES, PYTHON, document, hostile_run, page_of, training
from sonde_test import environment, program, run, sonde


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("html")


@pytest.fixture(scope="module")
def runs(folder):
    """The same training with one worker and with two."""
    return [training(folder, n) for n in (1, 2)]


@pytest.fixture(scope="module")
def page(folder, runs):
    return page_of(folder, "two", *[r.directory for r in runs])


def test_the_document_agrees_with_the_report(page, runs):
    for part, one in zip(document(page)["runs"], runs):
        answer = one.report()
        lane = part["timeline"]["lanes"][0]
        assert lane["trains"]
        for phase in answer["phases"]:
            if phase["phase"] == "other":
                continue
            busy = sum(lane["busy"].get(phase["phase"], [])) / 100 / lane["buckets"]
            # Buckets hold whole percents: right to half a percent of those it is in.
            used = sum(1 for b in lane["busy"].get(phase["phase"], []) if b) / lane["buckets"]
            seconds = busy * part["timeline"]["duration_s"]
            slack = 0.01 * part["timeline"]["duration_s"] * used + 1e-4
            assert abs(seconds - phase["total_s"]) <= slack + 0.01 * phase["total_s"], phase
        zones = next(f for f in part["flame"] if f["id"] == "zones")
        self_s = sum(o["self_s"] for o in answer["operations"] if o["kind"] == "zone")
        assert sum(zones["self"]) / 1e9 == pytest.approx(self_s, rel=1e-4)
        steps = next(d for d in part["distributions"] if d["path"] is None)
        assert sum(b[2] for b in steps["bars"]) == answer["summary"]["step_ms"]["count"]
        assert part["timeline"]["steps"]["count"] == answer["summary"]["step_ms"]["count"]
        assert part["timeline"]["zones"] == sum(o["count"] for o in answer["operations"] if o["kind"] == "zone")


def test_parents_of_a_call_tree_come_first_and_windows_hold_what_they_say(page):
    for part in document(page)["runs"]:
        for tree in part["flame"]:
            assert all(p < i for i, p in enumerate(tree["parent"]) if i)
            assert len(tree["parent"]) == len(tree["site"]) == len(tree["self"])
            assert max(tree["site"]) < len(part["sites"])
        for window in part["timeline"]["windows"]:
            begin = window["start_s"] * 1e9
            for delta, length in zip(window["begin_delta_ns"], window["ns"]):
                begin += delta
                assert length >= 0 and begin <= window["end_s"] * 1e9 + 1
                assert begin + length >= window["start_s"] * 1e9 - 1


def test_a_default_run_stays_below_three_megabytes(page, folder):
    sonde("demo", "--quiet", "--steps", "60", "-o", folder / "demo")
    demo = page_of(folder, "demo", folder / "demo")
    assert demo.stat().st_size < LIMIT_BYTES and page.stat().st_size < 2 * LIMIT_BYTES
    assert oct(page.stat().st_mode & 0o777) == "0o600"


# ---- What must not be told --------------------------------------------------------------


def test_homes_people_machines_and_secrets_are_hidden_unless_asked(folder):
    home = folder / "home" / "mallory"
    home.mkdir(parents=True)
    script = home / "train.py"
    script.write_text(
        "import sonde, sys\n"
        "with sonde.zone('/home/mallory/data of mallory@' + sys.argv[1], phase='forward'): pass\n"
    )
    host = os.uname().nodename
    made = run(
        folder / "told", "/usr/bin/python3", script, host, "--api-key=abcdefgh12345678",
        options=["--tag", "where=/home/mallory/exp", "--no-redact"], cwd=home,
        env={**PYTHON, "HOME": str(home), "USER": "mallory", "LOGNAME": "mallory"},
    )  # fmt: skip
    shown = environment(HOME=str(home), USER="mallory", LOGNAME="mallory")
    hidden, told = folder / "hidden.html", folder / "told.html"
    sonde("report", made.directory, "--format", "html", "-o", hidden, env=shown)
    sonde("report", made.directory, "--format", "html", "-o", told, "--unredacted", env=shown)
    assert "mallory" in told.read_text() and "abcdefgh12345678" in told.read_text()
    text = json.dumps(document(hidden))
    assert "mallory" not in text and "abcdefgh12345678" not in text
    assert "~/exp" in text
    assert document(hidden)["runs"][0]["report"]["run"]["host"] in ("host", None, "localhost")
    assert document(hidden)["hidden"] and not document(told)["hidden"]


# ---- Hostile input ------------------------------------------------------------------------


def test_damaged_traces_give_a_page_or_an_error_but_no_crash(folder):
    hostile = hostile_run(folder, 30_000)
    rng = random.Random(5)
    for attempt in range(6):
        copy = folder / f"damaged{attempt}"
        copy.mkdir()
        for file in hostile.directory.iterdir():
            data = bytearray(file.read_bytes())
            if file.suffix in (".sonde", ".tables"):
                for _ in range(200):
                    data[rng.randrange(len(data))] = rng.randrange(256)
            (copy / file.name).write_bytes(data)
        out = folder / f"damaged{attempt}.html"
        done = sonde("report", copy, "--format", "html", "-o", out, check=False)
        assert done.returncode in (0, 2), done.stderr
        if done.returncode == 0:
            assert document(out)["schema"] == "sonde.app/1"


# ---- The command ----------------------------------------------------------------------------


def test_mistakes_are_told(folder, runs):
    assert sonde("report", "nowhere", "--format", "html", "-o", folder / "x.html", check=False).returncode == 2
    nine = [runs[0].directory] * 9
    many = sonde("report", *nine, "--format", "html", "-o", folder / "x.html", check=False)
    assert many.returncode == 2 and "at most 8 runs" in many.stderr
    assert not (folder / "x.html").exists()
    two = sonde("report", runs[0].directory, runs[1].directory, check=False)
    assert two.returncode == 2 and "one RUN at a time" in two.stderr
    # Without -o it goes where a pipe wants it.
    assert sonde("report", runs[0].directory, "--format", "html").stdout.startswith("<!doctype html>")


def test_the_course_of_metrics_is_on_the_page_with_its_peaks(folder):
    places = [folder / f"course{steps}" for steps in (3000, 500)]
    for place, steps in zip(places, (3000, 500)):
        run(place, program("metric_course"), steps)
    for part, steps in zip(document(page_of(folder, "courses", *places))["runs"], (3000, 500)):
        courses = {c["name"]: list(zip(c["steps"], c["values"])) for c in part["courses"]}
        loss = courses["loss"]
        assert 100 < len(loss) <= 400 and not part["courses"][0]["partial"]
        assert (steps // 3, 99) in loss and (steps // 2, -5) in loss and loss[-1][0] == steps
        assert courses["queue"] == [(100 * i, i % 7) for i in range(1, steps // 100 + 1)]
        assert courses["odd"] == [(steps, None)]  # NaN is no number, and no zero


def test_who_tells_no_metrics_has_no_courses(folder):
    sonde("run", "-q", "-o", folder / "plain", "--", "true")
    (part,) = document(page_of(folder, "plain", folder / "plain"))["runs"]
    assert part["courses"] == []
