"""Context switches by process, against the kernel's own sum."""

import json

import pytest
from sonde_test import program, run


@pytest.fixture(scope="module")
def waited(tmp_path_factory):
    done = run(
        tmp_path_factory.mktemp("switches") / "run",
        program("context_switches"),
        2,
        400,
        options=["--interval", "50ms", "--no-preload"],
    )
    return json.loads(done.stdout), done.report()


def test_switches_of_all_threads_are_the_kernels_own_sum(waited):
    truth, answer = waited
    (found,) = [p for p in answer["processes"] if p["pid"] == truth["pid"]]
    # It goes on for a second after it has counted: a few more waits, no fewer.
    assert truth["voluntary"] >= 800
    assert truth["voluntary"] <= found["voluntary_switches"] <= truth["voluntary"] + 40
    assert truth["involuntary"] <= found["involuntary_switches"]


def test_there_is_a_rate_over_time_of_the_run_and_of_the_process(waited):
    truth, answer = waited
    monitors = answer["monitors"]
    series = monitors["context_switches_voluntary"]
    assert series["unit"] == "1/s" and series["max"] > 100
    assert "context_switches_involuntary" in monitors
    assert f"context_switches_voluntary/{truth['pid']}" in monitors
    # After the waits nobody waits any more.
    assert series["points"][-1][1] < series["max"]
