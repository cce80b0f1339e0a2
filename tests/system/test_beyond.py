"""What lies beyond a limit still counts for what it is, and is told."""

import subprocess

import pytest
from sonde_test import program, report, run, sonde


def seconds_of(answer, phase):
    return sum(p["total_s"] for p in answer["phases"] if p["phase"] == phase)


def test_paths_beyond_the_limit_count_for_their_phase(tmp_path):
    done = run(tmp_path / "run", program("beyond_paths"), 20)
    answer = done.report()
    forward, backward, optimizer, plain = map(float, done.stdout.split())
    assert seconds_of(answer, "forward") == pytest.approx(forward, rel=0.02)
    assert seconds_of(answer, "backward") == pytest.approx(backward, rel=0.02)
    assert seconds_of(answer, "optimizer") == pytest.approx(optimizer, rel=0.02)
    assert seconds_of(answer, "other") >= 0.98 * plain
    assert sum(p["share"] for p in answer["phases"]) == pytest.approx(1, abs=0.005)
    rows = [o for o in answer["operations"] if o["name"] == "(other paths)"]
    counts = {o["phase"]: o["count"] for o in rows if o["kind"] == "zone"}
    assert counts == {"forward": 20, "backward": 20, "optimizer": 20}
    assert answer["summary"]["paths_lost"] == sum(o["count"] for o in rows)
    (train,) = [o for o in answer["operations"] if o["name"] == "train 0"]
    assert train["total_s"] >= forward + backward + optimizer + plain
    assert plain <= train["self_s"] <= plain + 0.1 + 0.02 * train["total_s"]
    assert all(o["self_s"] >= 0 for o in answer["operations"])
    text = sonde("report", tmp_path / "run").stdout
    assert "beyond the limit" in " ".join(text.split())


def test_a_thread_two_sessions_late_writes_into_neither(tmp_path):
    """Its slot was in the first file, whose place in memory a later file may take."""
    runs = [tmp_path / name for name in "abc"]
    subprocess.run([program("late_store"), *runs], check=True, timeout=60)
    first, second, third = (report(path) for path in runs)
    assert {o["name"]: o["count"] for o in first["operations"]} == {"late": 1, "plain": 1}
    for later in (second, third):
        assert {o["name"]: o["count"] for o in later["operations"]} == {"plain": 100}
        assert later["summary"]["events"] == second["summary"]["events"]
