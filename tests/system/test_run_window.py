# waits: yes
"""Windows: what is recorded is what was asked for, and the program runs on."""

import json
import time

import pytest
from sonde_test import counts_by_name, program, report, run

STEPS, STEP_US = 60, 10_000


def started(done):
    """Moments at which steps began, by number from 1."""
    return {int(n): int(t) for n, t in (line.split() for line in done.stdout.splitlines())}


def recorded(tmp_path, *options):
    done = run(tmp_path / "run", program("steady"), STEPS, STEP_US, options=options)
    moments = started(done)
    assert len(moments) == STEPS  # the program never notices
    return counts_by_name(report(tmp_path / "run"))["step"], moments, done


def begin_ns(tmp_path):
    return json.loads((tmp_path / "run/run.json").read_text())["started_ns"]


def test_without_a_window_all_is_recorded(tmp_path):
    assert recorded(tmp_path)[0] == STEPS


@pytest.mark.parametrize(
    "steps, expected", [("11:21", 10), ("1:4", 3), (":6", 5), ("58:", 3), ("59:900", 2)]
)
def test_a_window_of_steps_is_exact(tmp_path, steps, expected):
    assert recorded(tmp_path, "--steps", steps)[0] == expected


def test_a_window_behind_the_last_step_is_empty(tmp_path):
    assert recorded(tmp_path, "--steps", "900:1000")[0] == 0


@pytest.mark.parametrize(
    "options, first_s, last_s",
    [
        (["--after", "0.2"], 0.2, 99),
        (["--duration", "0.2"], 0, 0.2),
        (["--after", "200ms", "--duration", "0.15s"], 0.2, 0.35),
    ],
)
def test_a_window_of_time_catches_its_steps(tmp_path, options, first_s, last_s):
    count, moments, _ = recorded(tmp_path, *options)
    base = begin_ns(tmp_path)
    inside = [n for n, t in moments.items() if first_s <= (t - base) / 1e9 < last_s]
    # A zone that is open when the window opens or shuts may count or not, and the
    # window is counted from the start of the program, just behind run.json's.
    slack = 2 + 0.05e6 / STEP_US if last_s < 99 or first_s > 0 else 0
    assert abs(count - len(inside)) <= slack, (count, len(inside))
    assert 0 < count < STEPS


def test_zones_below_the_threshold_are_only_counted(tmp_path):
    assert recorded(tmp_path, "--min-zone", "1ms")[0] == STEPS
    done = run(tmp_path / "long", program("steady"), 5, 1000, options=["--min-zone", "1s"])
    assert done.returncode == 0
    assert counts_by_name(report(tmp_path / "long"))["step"] == 0


def test_a_recording_daemon_is_noted_and_not_waited_for(tmp_path):
    run(tmp_path / "run", program("steady"), 200, 20_000, "fork")
    notes = json.loads((tmp_path / "run/run.json").read_text())["notes"]
    assert any("outlived" in note for note in notes), notes
    end = time.monotonic() + 60
    while counts_by_name(report(tmp_path / "run"))["step"] < 200:
        assert time.monotonic() < end
        time.sleep(0.5)
