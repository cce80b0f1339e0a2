# waits: yes
"""Cards, energy and alerts while a program runs: NVML played by tests/system/libs/fake_nvml.c."""

import subprocess

import pytest

from sonde_test import environment, program, run, sonde

pytestmark = pytest.mark.skipif(
    "--interval" not in sonde("run", "--help", check=False).stdout,
    reason="this build has no sampler",
)

FAST = ["--interval", "0.05"]


def with_cards(script):
    return environment(SONDE_NVML=program("fake_nvml.so"), FAKE_NVML=script)


def run_steady(directory, script, *options, steps=40, microseconds=50000):
    """A program of two seconds."""
    return run(
        directory,
        program("steady"),
        str(steps),
        str(microseconds),
        options=[*FAST, *options],
        env=with_cards(script),
    ).report()


def run_in_time(directory, script, watts):
    """A busy machine may take its time between noting the moment and reading the counter:
    then once more. Energy that is counted wrong is so every time."""
    for i in range(4):
        answer = run_steady(directory / f"{i}", script)
        if answer["energy"]["gpu"]["joules"] / watts == about(answer["run"]["duration_s"]):
            break
    return answer


def about(duration_s):
    return pytest.approx(duration_s, abs=0.3)


def test_two_cards_are_in_the_report_with_their_energy(tmp_path):
    answer = run_in_time(tmp_path, "cards=2 watts=400", 800)
    monitors = answer["monitors"]
    assert monitors["gpu/gpu0"]["avg"] == 40 and monitors["gpu/gpu1"]["max"] == 50
    assert monitors["gpu_memory/gpu1"]["max"] == 21 * 1024
    assert monitors["gpu_throttled_heat/gpu1"]["avg"] == 1
    energy = answer["energy"]["gpu"]
    assert energy["status"] == "measured"
    assert energy["joules"] / 800 == about(answer["run"]["duration_s"])


def test_without_an_energy_counter_power_is_added_up(tmp_path):
    answer = run_in_time(tmp_path, "cards=1 watts=300 noenergy", 300)
    energy = answer["energy"]["gpu"]
    assert energy["status"] == "measured"
    assert energy["joules"] / 300 == about(answer["run"]["duration_s"])


def test_a_card_that_is_lost_costs_its_own_values_only(tmp_path):
    answer = run_steady(tmp_path / "r", "cards=2 lost=1@5")
    assert answer["run"]["exit"]["code"] == 0
    whys = {p["metric"]: p["method"] for p in answer["provenance"]}
    assert "fallen off" in whys["gpu/gpu1"]
    assert len(answer["monitors"]["gpu/gpu0"]["points"]) > len(
        answer["monitors"]["gpu/gpu1"]["points"]
    )


def test_parts_of_cards(tmp_path):
    answer = run_steady(tmp_path / "r", "cards=2 mig=1")
    assert "gpu/gpu1" not in answer["monitors"]
    assert answer["monitors"]["gpu_memory/gpu1-mig2"]["max"] == 3 * 1024


def test_alerts_on_cards_fire_for_those_they_concern(tmp_path):
    rules = ["gpu_temp>=61C", "gpu_temp>90C", "gpu_memory gpu0>20GiB:1s", "rss>1TiB"]
    options = [word for rule in rules for word in ("--alert", rule)]
    answer = run_steady(tmp_path / "r", "cards=2", *options)
    [hot] = answer["alerts"]
    assert hot["expression"] == "gpu_temp>=61C" and hot["subject"] == "gpu1"
    assert hot["state"] == "open" and hot["peak"] == 61
    assert answer["run"]["started"] <= hot["fired"]
    compared = {r["expression"]: r["compared"] for r in answer["alert_rules"]}
    assert all(compared[rule] > 0 for rule in rules), compared


def test_shares_of_the_machine_are_shares(tmp_path):
    rules = ["cpu>=0%", "cpu>100.5%", "memory>0.1%", "memory>100.5%", "io_wait>100.5%"]
    options = [word for rule in rules for word in ("--alert", rule)]
    answer = run_steady(tmp_path / "r", "cards=0", *options)
    fired = {a["expression"]: a for a in answer["alerts"]}
    assert set(fired) == {"cpu>=0%", "memory>0.1%"}
    assert 0 < fired["memory>0.1%"]["peak"] <= 100
    assert all(r["compared"] > 0 for r in answer["alert_rules"])


def test_no_driver_is_said_with_what_to_do(tmp_path):
    env = environment(SONDE_NVML="/nonexistent.so")
    answer = run(tmp_path / "r", "true", options=FAST, env=env).report()
    whys = {p["metric"]: p["method"] for p in answer["provenance"]}
    assert "no NVIDIA driver" in whys["nvml"]


def test_a_program_is_told_by_calls():
    done = subprocess.run(
        [program("alert_calls")], capture_output=True, text=True, timeout=60,
        env=with_cards("cards=2"), check=True,
    )
    lines = done.stdout.splitlines()
    assert lines[0] == "-22 character 5: expected a number such as 80 or 0.5"
    assert lines[1:] == ["memory>1MiB '' MiB 1 first 1", "gpu_temp>=61C 'gpu1' C 1 late 1"]
