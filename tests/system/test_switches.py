"""Off means off: by environment, by pause, by site."""

import subprocess

import pytest
from sonde_test import SONDE, counts_by_path, environment, program, run, sonde


def switches(tmp_path, mode):
    done = run(tmp_path / "run", program("switches"), mode)
    return counts_by_path(done.report()), done.stdout


def test_a_pause_leaves_out_exactly_what_happened_in_it(tmp_path):
    counts, _ = switches(tmp_path, "pause")
    assert counts[("zone",)] == 40
    assert counts[("zone", "inner")] == 40


def test_a_site_switched_off_leaves_out_itself_alone(tmp_path):
    counts, _ = switches(tmp_path, "site")
    assert counts[("on",)] == 60
    assert counts[("on", "off")] == 40
    assert counts[("on", "off", "inside")] == 40
    assert counts[("on", "inside")] == 20


def test_a_zone_that_began_recorded_is_ended_though_paused(tmp_path):
    counts, _ = switches(tmp_path, "across")
    assert counts[("begun recorded",)] == 1
    assert counts[("begun paused",)] == 0
    assert counts[("zone",)] == 5
    assert ("begun recorded", "zone") not in counts


def test_a_program_can_ask_whether_it_is_recorded(tmp_path):
    _, output = switches(tmp_path, "state")
    assert output.split("\n")[:3] == ["1 1", "0 1", "1 1"]


@pytest.mark.parametrize("value", ["1", "yes", "true"])
def test_disabled_the_program_runs_and_nothing_is_written(tmp_path, value):
    env = environment(SONDE_DISABLE=value)
    command = [SONDE, "run", "--", program("switches"), "state"]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout.split("\n")[:3] == ["0 0", "0 0", "0 0"]
    assert list(tmp_path.iterdir()) == []


def test_disabled_the_exit_status_is_still_the_program_s(tmp_path):
    env = environment(SONDE_DISABLE=1)
    done = sonde("run", "--", "sh", "-c", "exit 9", env=env, cwd=tmp_path, check=False)
    assert done.returncode == 9


def test_without_sonde_run_a_program_records_nothing(tmp_path):
    command = [program("switches"), "state"]
    done = subprocess.run(
        command, env=environment(), cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout.split("\n")[:3] == ["0 0", "0 0", "0 0"]
    assert list(tmp_path.iterdir()) == []
