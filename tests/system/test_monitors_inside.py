# timeout: 300
"""A program that watches itself: sonde_monitor_start() and what belongs to it."""

import json
import subprocess

import pytest
from sonde_test import NO_LEAK_CHECK, environment, program, report, run

GROWN = 64
ENOENT, EBUSY, EINVAL = -2, -16, -22


def watch(*arguments):
    done = subprocess.run(
        [program("watch_self"), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment(),
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def assert_true_answers(answer, before_s=0.0):
    """before_s: CPU time the program may have used before what it asks about began."""
    assert answer["started"] == 0 and answer["stopped"] == 0
    assert answer["early"] == ENOENT and answer["after"] == ENOENT
    assert answer["again"] == EBUSY and answer["bad"] == EINVAL
    assert answer["grown"] == pytest.approx(GROWN, rel=0.01, abs=1)
    assert answer["peak"] - answer["least"] == pytest.approx(GROWN, rel=0.01, abs=1)
    assert answer["cpu_s"] == pytest.approx(
        answer["used_s"], rel=0.01, abs=0.01 + before_s
    )
    assert answer["samples"] >= 10
    assert answer["cpu_peak"] > 0


def test_values_are_true_without_a_session():
    (answer,) = watch()
    assert_true_answers(answer)


def test_an_unknown_metric_leaves_the_output_alone():
    (answer,) = watch()
    assert answer["nothing"] == ENOENT
    assert answer["unknown"] == 7


def test_a_forked_child_does_not_watch_and_may_start_anew():
    parent, child = watch("fork")
    assert_true_answers(parent)
    assert_true_answers(child)


def test_a_session_keeps_the_values_in_its_run(tmp_path):
    (answer,) = watch("session", tmp_path / "run")
    assert_true_answers(answer, before_s=0.04)  # its start-up is not the session's
    kept = report(tmp_path / "run")
    assert kept["monitors"]["rss"]["max"] == pytest.approx(answer["peak"], rel=0.01)
    assert kept["monitors"]["cpu"]["unit"] == "percent"
    assert len(kept["monitors"]["rss"]["points"]) >= 5
    (process,) = kept["processes"]
    assert process["cpu_s"] == pytest.approx(answer["used_s"], rel=0.05, abs=0.05)


def test_under_sonde_run_both_views_stand_side_by_side(tmp_path):
    done = run(tmp_path / "run", program("watch_self"), env=environment(**NO_LEAK_CHECK))
    answer = json.loads(done.stdout)
    monitors = done.report()["monitors"]
    pid = next(p["pid"] for p in done.report()["processes"])
    inside = monitors[f"rss/inside {pid}"]
    assert inside["max"] == pytest.approx(answer["peak"], rel=0.01)
    assert monitors["rss"]["max"] == pytest.approx(answer["peak"], rel=0.05, abs=2)
