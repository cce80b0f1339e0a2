"""`sonde demo`: a real training program, profiled; the profile changes nothing."""

import re

import pytest
from sonde_test import SONDE, assert_consistent, environment, operation, report, sonde

STEPS = 200


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    place = tmp_path_factory.mktemp("demo")
    done = sonde("demo", "--steps", STEPS, "-o", place / "run", cwd=place)
    return done, report(place / "run")


def checksum(text):
    return re.search(r"checksum ([0-9a-f]{16})", text)[1]


def test_it_says_what_it_learned_and_then_where_the_time_went(demo):
    done, _ = demo
    assert "accuracy" in done.stdout and "loss" in done.stdout
    assert "forward" in done.stderr


def test_training_is_the_same_recorded_or_not(demo, tmp_path):
    recorded = checksum(demo[0].stdout)
    alone = sonde("demo", "--train", "--steps", STEPS, cwd=tmp_path)
    off = sonde(
        "demo", "--steps", STEPS, cwd=tmp_path, env=environment(SONDE_DISABLE=1)
    )
    assert checksum(alone.stdout) == recorded
    assert checksum(off.stdout) == recorded
    other = sonde("demo", "--train", "--steps", STEPS, "--seed", 2, cwd=tmp_path)
    assert checksum(other.stdout) != recorded


def test_every_phase_of_the_loop_is_in_the_report(demo):
    phases = {p["phase"] for p in demo[1]["phases"] if p["total_s"] > 0}
    assert phases >= {
        "data_loading",
        "forward",
        "backward",
        "gradient",
        "optimizer",
        "evaluation",
        "checkpoint",
        "model_creation",
        "other",
    }
    names = {o["phase"] for o in demo[1]["operations"]}
    assert names >= {"preprocessing", "augmentation", "collate", "sync"}


def test_counts_of_the_loop_are_exact(demo):
    answer = demo[1]
    for path in [("forward",), ("backward",), ("clip gradients",), ("adamw",)]:
        assert operation(answer, *path)["count"] == STEPS
    assert operation(answer, "forward", "conv1 forward")["count"] == STEPS
    assert answer["summary"]["step_ms"]["count"] in (STEPS - 1, STEPS)
    assert answer["summary"]["samples_per_s"] > 0
    assert answer["summary"]["lost"] == 0
    assert_consistent(answer)


def test_what_the_program_said_about_itself_is_kept(demo):
    run = demo[1]["run"]
    assert run["params"]["batch"] == "32"
    assert run["tags"]["task"] == "digits"
    assert 0 < run["metrics"]["loss"] < 3
    assert 0.2 < run["metrics"]["accuracy"] <= 1
    drawing = operation(demo[1], "draw pictures")
    assert drawing["component"] == "data"
    assert drawing["mem_peak_mb"] - drawing["mem_before_mb"] > 20
    assert drawing["custom"]["pictures"]["last"] == 7000
    assert operation(demo[1], "clip gradients")["custom"]["norm"]["count"] == STEPS
    reader = operation(demo[1], "prepare batch", "read")
    assert reader["component"] == "loader"
    assert {"loader", "net", "data"} <= {c["component"] for c in demo[1]["components"]}


def test_wrong_options_are_named_with_a_remedy():
    done = sonde("demo", "--step", "x", check=False)
    assert done.returncode == 2
    assert "--step" in done.stderr
    assert SONDE.exists()
