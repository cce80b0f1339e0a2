"""The examples are what the documentation quotes: they run."""

from conftest import SOURCE


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
