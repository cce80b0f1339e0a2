"""--alert, --grid, --no-energy: what a user sees of them."""

import json
import os

import pytest

from sonde_test import environment, program, report, run, sonde, workload


def rules(answer):
    return {rule["expression"]: rule for rule in answer["alert_rules"]}


def alerts(answer, expression):
    return [a for a in answer["alerts"] if a["expression"] == expression]


def test_slow_steps_fire_and_fast_ones_do_not(tmp_path):
    options = ["--alert", "batch>20ms", "--alert", "batch>100s", "--alert", "step<1us"]
    answer = run(tmp_path / "r", program("steady"), "10", "30000", options=options).report()
    [slow] = alerts(answer, "batch>20ms")
    assert slow["value"] >= 0.03
    assert slow["threshold"] == pytest.approx(0.02)
    assert slow["count"] == 9, "all nine times between ten steps were above"
    assert slow["unit"] == "s"
    assert not alerts(answer, "batch>100s")
    assert rules(answer)["batch>100s"]["compared"] == 9
    assert rules(answer)["batch>100s"]["unheard"] is None


def test_a_slow_operation_is_named(tmp_path):
    options = ["--alert", "operation>25ms", "--alert", "operation forward>1us"]
    answer = run(tmp_path / "r", workload("known_times"), options=options).report()
    slow = {a["subject"] for a in alerts(answer, "operation>25ms")}
    assert "evaluate" in slow, slow  # 30 ms in one call
    assert {a["subject"] for a in alerts(answer, "operation forward>1us")} == {"forward"}


def test_a_rule_that_could_not_fire_says_why(tmp_path):
    options = ["--alert", "no_such_metric>1", "--alert", "batch>1ms"]
    done = sonde("run", "-o", tmp_path / "r", *options, "--", "true")
    answer = report(tmp_path / "r")
    assert rules(answer)["no_such_metric>1"]["unheard"] == "no_such_metric was not measured"
    assert "sonde_step" in rules(answer)["batch>1ms"]["unheard"]
    assert answer["alerts"] == []
    assert "ALERTS" in done.stderr and "could not fire" in done.stderr


@pytest.mark.parametrize(
    "expression, message",
    [
        ("cpu>>80", "character 5: expected a number"),
        ("cpu>80furlongs", "character 7: unknown unit 'furlongs'"),
        ("memory>16", "character 10: memory wants a unit"),
        ("cpu>80%:10", "character 9: expected a duration"),
    ],
)
def test_mistakes_are_shown_and_nothing_runs(tmp_path, expression, message):
    done = sonde(
        "run", "-o", tmp_path / "r", "--alert", expression, "--", "touch", tmp_path / "ran",
        check=False,
    )
    assert done.returncode == 125
    assert message in done.stderr
    assert not (tmp_path / "ran").exists()


def test_the_reference_set(tmp_path):
    answer = run(tmp_path / "r", "true", options=["--alert", "reference"]).report()
    assert len(answer["alert_rules"]) == 13
    assert "memory>16GiB" in rules(answer)


def test_without_alerts_there_is_no_file_and_no_section(tmp_path):
    done = sonde("run", "-o", tmp_path / "r", "--", "true")
    assert "ALERTS" not in done.stderr
    assert not [n for n in os.listdir(tmp_path / "r") if n.startswith("alerts-")]


def test_a_damaged_file_of_alerts_is_left_out(tmp_path):
    run(tmp_path / "r", "true", options=["--alert", "reference"])
    [name] = [n for n in os.listdir(tmp_path / "r") if n.startswith("alerts-")]
    whole = (tmp_path / "r" / name).read_bytes()
    for damaged in (b"", whole[:100], whole[:20000], b"\xff" * len(whole)):
        (tmp_path / "r" / name).write_bytes(damaged)
        assert isinstance(report(tmp_path / "r")["alert_rules"], list)


# ---- Energy ----------------------------------------------------------------------------


def test_energy_follows_cpu_time_where_nothing_counts(tmp_path):
    answer = run(tmp_path / "r", workload("known_times")).report()
    energy = answer["energy"]
    cpu_s = answer["summary"]["cpu_percent_avg"] / 100 * answer["run"]["duration_s"]
    assert energy["grid_g_per_kwh"] == 458 and "Ember" in energy["grid_source"]
    if energy["cpu"]["status"] == "modelled":  # a machine with RAPL measures
        assert 4 <= energy["cpu"]["joules"] / cpu_s <= 12.1
    parts = [energy[p]["joules"] for p in ("cpu", "dram", "gpu")]
    assert energy["joules"] == pytest.approx(sum(j for j in parts if j is not None), abs=1e-5)
    assert energy["co2e_g"] == pytest.approx(energy["joules"] / 3.6e6 * 458, rel=1e-3)
    status = {p["metric"]: p["status"] for p in answer["provenance"]}
    assert status["energy.cpu"] == energy["cpu"]["status"]
    assert status["energy.co2e_g"] == "modelled"


def test_the_grid_is_settable_and_flags_win(tmp_path):
    env = environment(SONDE_GRID="100")
    by_env = run(tmp_path / "a", workload("known_times"), env=env).report()["energy"]
    assert by_env["grid_g_per_kwh"] == 100
    both = run(
        tmp_path / "b", workload("known_times"), options=["--grid", "56.5"], env=env
    ).report()["energy"]
    assert both["grid_g_per_kwh"] == 56.5 and both["grid_source"] == "--grid"
    assert both["co2e_g"] == pytest.approx(both["joules"] / 3.6e6 * 56.5, rel=1e-3)
    solar = run(tmp_path / "c", "true", options=["--grid", "0"]).report()["energy"]
    assert solar["co2e_g"] == 0 and solar["grid_g_per_kwh"] == 0
    assert sonde("run", "--grid", "lots", "--", "true", check=False).returncode == 125


def test_energy_can_be_switched_off(tmp_path):
    done = sonde("run", "-o", tmp_path / "r", "--no-energy", "--", workload("known_times"))
    energy = report(tmp_path / "r")["energy"]
    assert energy["joules"] is None and energy["co2e_g"] is None
    assert energy["source"] == "off"
    assert "ENERGY" not in done.stderr
    assert json.loads((tmp_path / "r" / "run.json").read_text())["options"]["energy"] is False
