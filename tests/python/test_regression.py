"""check_regression as a context manager and as a pytest fixture."""

import json
import subprocess
import sys
import textwrap
import time

import pytest
from conftest import environment, python

import sonde


@pytest.fixture
def baseline(tmp_path):
    return tmp_path / "perf.json"


def put(path, **times):
    path.write_text(json.dumps({k: {"wall_time_s": v} for k, v in times.items()}))


def test_a_slower_block_is_a_regression(baseline):
    put(baseline, training=0.01)
    with pytest.raises(sonde.RegressionError, match="training"):
        with sonde.check_regression("training", threshold=0.2, baseline=baseline):
            time.sleep(0.05)
    put(baseline, training=10.0)
    with sonde.check_regression("training", baseline=baseline) as check:
        pass
    assert check.result.regressed is False and check.result.change < -0.9


def test_the_callback_replaces_the_exception(baseline):
    put(baseline, x=0.001)
    seen = []
    with sonde.check_regression("x", 0.2, baseline, on_regression=seen.append):
        time.sleep(0.02)
    assert seen[0].regressed and seen[0].baseline_s == 0.001


def test_a_missing_entry_is_written_once(baseline):
    with sonde.check_regression("new", baseline=baseline) as check:
        time.sleep(0.01)
    assert check.result.regressed is None
    stored = json.loads(baseline.read_text())["new"]
    assert stored["wall_time_s"] >= 0.01 and len(stored["times_s"]) == 1
    with sonde.check_regression("never", baseline=baseline, update="never"):
        pass
    assert list(json.loads(baseline.read_text())) == ["new"]


def test_several_runs_are_judged_by_their_median(baseline):
    calls = []
    check = sonde.check_regression("f", baseline=baseline)
    result = check.run(lambda: calls.append(time.sleep(0.002)), runs=5, warmup=1)
    assert len(calls) == 6 and result.runs == 5
    assert len(json.loads(baseline.read_text())["f"]["times_s"]) == 5


def times_of(path, name, times):
    path.write_text(json.dumps({name: {"wall_time_s": sorted(times)[len(times) // 2], "times_s": times}}))


def test_with_eight_samples_it_is_the_gate_of_the_command(baseline):
    """The statistics of sonde check: an interval, and no verdict where none is possible."""
    steady = [1.0 + i / 1000 for i in range(10)]
    times_of(baseline, "f", steady)
    check = sonde.check_regression("f", 0.2, baseline, on_regression=lambda c: None)
    slower = check.judge([t * 1.5 for t in steady])
    assert slower.regressed is True and slower.gate["verdict"] == "fail"
    assert slower.interval[0] > 0.4 and slower.interval[1] < 0.6
    same = check.judge(steady)
    assert same.regressed is False and same.interval[0] <= 0 <= same.interval[1]
    wild = [1.0, 3.0, 0.5, 9.0, 0.7, 2.0, 5.0, 0.9]
    times_of(baseline, "f", wild)
    unsure = check.judge([t * 1.3 for t in wild])
    assert unsure.regressed is None and unsure.gate["verdict"] == "inconclusive"
    assert "[" in str(slower)


def test_a_failing_block_is_not_judged_and_bad_files_are_named(baseline):
    put(baseline, x=0.001)
    with pytest.raises(KeyError):
        with sonde.check_regression("x", baseline=baseline):
            time.sleep(0.01)
            raise KeyError
    baseline.write_text("{")
    with pytest.raises(ValueError, match="perf.json"):
        with sonde.check_regression("x", baseline=baseline):
            pass
    with pytest.raises(ValueError, match="update"):
        sonde.check_regression("x", update="sometimes")


def test_the_pytest_fixture(tmp_path):
    (tmp_path / "test_it.py").write_text(
        textwrap.dedent(
            """
            import os, time
            def test_time(sonde_regression):
                with sonde_regression("it", threshold=1.0):
                    time.sleep(float(os.environ["T"]))
            """
        )
    )
    from conftest import environment

    def go(seconds, *options):
        words = (
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "sonde.pytest_plugin",
        )
        env = environment(T=seconds)
        return python(*words, *options, check=False, cwd=tmp_path, env=env).returncode

    assert go(0.1) == 0  # writes the baseline
    assert go(1.0) == 1
    assert go(1.0, "--sonde-update") == 0
    assert go(1.0) == 0


def test_tests_side_by_side_lose_no_entry(baseline):
    script = """
        import os, sonde, sys
        for i in range(20):
            with sonde.check_regression(f"{os.getpid()}-{i}", 100, sys.argv[1]): pass
    """
    words = [sys.executable, "-c", textwrap.dedent(script), str(baseline)]
    running = [subprocess.Popen(words, env=environment()) for _ in range(4)]
    assert [p.wait(60) for p in running] == [0] * 4
    assert len(json.loads(baseline.read_text())) == 80
    assert [p.name for p in baseline.parent.iterdir()] == [baseline.name]


def test_a_threshold_that_is_no_number_is_refused_at_once(baseline):
    with pytest.raises(TypeError, match="'20%'"):
        sonde.check_regression("x", threshold="20%", baseline=baseline)
