"""The examples are what the documentation quotes: they run."""

import pytest
from conftest import SOURCE, python


def test_the_training_example(run):
    script = (SOURCE / "examples" / "python" / "training.py").read_text()
    answer = run(script)
    phases = {p["phase"] for p in answer["phases"]}
    assert {"data_loading", "forward", "backward", "optimizer"} <= phases
    assert answer["run"]["metrics"]["loss"] < 1
    assert answer.paths()[("training", "forward")] == 50
    assert answer.one("batches", "span")["count"] == 1
    assert answer["summary"]["samples_per_s"] > 0
    assert answer.balanced()


def test_the_optimising_example():
    pytest.importorskip("torch")
    done = python(SOURCE / "examples" / "python" / "optimize.py")
    assert "loader: accepted" in done.stdout and "epoch: 200 samples" in done.stdout
    assert "preprocessing: accepted" in done.stdout and "results: 4950" in done.stdout
