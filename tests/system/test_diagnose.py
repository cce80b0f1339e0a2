"""tools/diagnose: how the score of a cure comes about. No program runs here."""

import importlib.machinery
import importlib.util
import sys
import types

import pytest
from sonde_test import SOURCE


@pytest.fixture
def diagnose(monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    path = str(SOURCE / "tools" / "diagnose")
    loader = importlib.machinery.SourceFileLoader("diagnose", path)
    spec = importlib.util.spec_from_loader("diagnose", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def report(mean_ms, **more):
    gain = {"low": 0.4, "mid": 0.5, "high": 0.6}
    first = {"id": "gc_pauses", "severity": "high", "score": 1, "recommendation": ""}
    return {
        "account": {"mean_ms": mean_ms},
        "bottlenecks": [{**first, "predicted_gain": gain, **more}],
    }


@pytest.fixture
def compared(diagnose, monkeypatch):
    """What comes of sick runs and of cured ones that took so long."""

    def compare(sick, cured, cures, again=None):
        left = {"-steady": list(sick), "-cured": list(cured)}
        asked = []

        def run_once(workload, options, how, repeat, number=1):
            asked.append((how, number))
            return left[how].pop(0)

        monkeypatch.setattr(diagnose, "run_once", run_once)
        head = {"cure": "--cured", "truth": "gc_pauses"}
        workload = types.SimpleNamespace(
            head=head, truth="gc_pauses", healthy=False, words=lambda key: []
        )
        options = types.SimpleNamespace(cures=cures, again=again, no_cures=False)
        result = {"repeat": 0, "name": "x"}
        diagnose.compare_cure(workload, options, result)
        return result, asked

    return compare


def test_the_medians_of_sick_and_cured_runs_are_what_counts(diagnose, compared, capsys):
    sick, cured = ([report(t) for t in times] for times in ((30, 20, 19), (14, 9, 10)))
    result, asked = compared(sick, cured, 3)
    assert asked == [(how, n) for how in ("-steady", "-cured") for n in (1, 2, 3)]
    assert result["before_s"] == pytest.approx(0.020)
    assert result["after_s"] == pytest.approx(0.010)
    assert result["predicted_s"][1] == pytest.approx(0.010)  # half of the middle one
    assert result["error"] == pytest.approx(0)
    diagnose.print_cures([result])
    told = capsys.readouterr().out
    assert "before: median of 3 (19 – 30)" in told and "after: median of 3 (9 – 14)" in told


def test_one_cured_run_is_the_usual_thing(diagnose, compared, capsys):
    result, asked = compared([report(20)], [report(10)], 1)
    assert asked == [("-steady", 1), ("-cured", 1)]
    diagnose.print_cures([result])
    assert "median" not in capsys.readouterr().out


def test_a_cured_run_that_fails_is_told(compared):
    result, _ = compared([report(20)] * 2, [report(10), {"error": "exit 1"}], 2)
    assert result["cure_error"] == "exit 1"
    assert "after_s" not in result


def test_of_kept_runs_those_that_are_there_count(compared):
    gone = {"error": "is not there"}
    result, _ = compared([report(20), gone, gone], [report(10), gone, gone], 3, again="/kept")
    assert result["befores_s"] == [0.020]
    assert result["afters_s"] == [0.010]


def test_what_a_trial_is_the_median_of_is_told(diagnose, compared, capsys):
    trial = {"step_ms": 11, "low_ms": 9, "high_ms": 13, "median_of": 3}
    result, _ = compared([report(20, trial=trial)], [report(10)], 1)
    assert result["trial_of"] == 3
    diagnose.print_cures([result])
    assert "trial 11 (9 – 13, median of 3) +10 %" in capsys.readouterr().out
