# labels: no_asan
# timeout: 600
"""Lightning, Hugging Face, W&B, MLflow and other loggers: the real packages."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest
from sonde_test import BUILD, SOURCE, environment, report

HERE = Path(__file__).parent / "integrations"


@pytest.fixture(scope="session")
def interpreter():
    """Debian's with the packages of tests/venvs/integrations.txt."""
    made = subprocess.run(
        [SOURCE / "tools" / "venv", "integrations"],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    if made.returncode != 0:
        pytest.skip(made.stderr.strip().splitlines()[-1])
    return made.stdout.strip()


def package_path():
    return environment(
        PYTHONPATH=BUILD / "python",
        PYTHONDONTWRITEBYTECODE=1,
        CUDA_VISIBLE_DEVICES="",
        OMP_NUM_THREADS=1,
        TOKENIZERS_PARALLELISM="false",
    )


@pytest.fixture
def lines(interpreter, tmp_path):
    """lines(script, arguments…): what it printed, in a folder of its own."""

    def run(script, *arguments):
        done = subprocess.run(
            [interpreter, HERE / script, *arguments],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=package_path(),
            timeout=200,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.splitlines()

    return run


def phases(answer):
    return {p["phase"]: p for p in answer["phases"] if p["count"]}


# ---- Lightning --------------------------------------------------------------------------


@pytest.mark.parametrize("package", ["pytorch_lightning", "lightning.pytorch"])
def test_a_lightning_fit_has_steps_and_phases(lines, package, tmp_path):
    answer = json.loads(lines("lightning_fit.py", package)[-1])
    found = phases(answer)
    assert found["forward"]["count"] == 20
    assert found["backward"]["count"] == 20
    assert found["optimizer"]["count"] == 20
    assert found["data_loading"]["count"] >= 20
    assert found["evaluation"]["count"] >= 6
    assert answer["summary"]["step_ms"]["count"] in (19, 20)
    assert answer["run"]["params"]["lr"] == "0.1"
    assert answer["run"]["metrics"].keys() >= {"loss", "val_loss"}
    assert all(o["unbalanced"] == 0 for o in answer["operations"])
    with open(tmp_path / "csv" / "0" / "metrics.csv") as file:
        logged = [row for row in csv.DictReader(file) if row["sonde/phase/forward_s"]]
    assert float(logged[-1]["sonde/phase/forward_s"]) == pytest.approx(
        found["forward"]["total_s"]
    )


def test_a_failing_fit_keeps_its_exception_and_its_report(lines):
    out = lines("lightning_fit.py", "pytorch_lightning", "fail")
    assert "the model's own mistake" in out
    answer = json.loads(out[-1])
    assert phases(answer)["backward"]["count"] == 5
    assert phases(answer)["forward"]["count"] == 6


def test_the_profiler_alone_gives_phases(lines):
    answer = json.loads(lines("lightning_fit.py", "lightning.pytorch", "profiler")[-1])
    found = phases(answer)
    assert found["forward"]["count"] == found["backward"]["count"] == 20
    assert found["optimizer"]["count"] == 20
    assert found["data_loading"]["count"] >= 20
    assert found["gradient"]["count"] >= 40  # zero_grad, clipping
    assert found["evaluation"]["count"] >= 6 and found["checkpoint"]["count"] >= 2


# ---- Hugging Face -----------------------------------------------------------------------


def test_a_trainer_reports_to_its_trackers(lines, tmp_path):
    answer = json.loads(lines("huggingface_train.py", "wandb,mlflow")[-1])
    # Accelerate reads one batch ahead; the session ends in the middle of the last step.
    assert answer["summary"]["step_ms"]["count"] in (17, 18)
    assert answer["summary"]["optimizer_steps"] == 9
    found = {name: phase["count"] for name, phase in phases(answer).items()}
    assert found["forward"] == found["backward"] == 18
    assert found["optimizer"] == found["gradient"] == 9 and found["evaluation"] >= 9
    assert answer["run"]["params"]["gradient_accumulation_steps"] == "2"
    assert answer["run"]["metrics"].keys() >= {"loss", "eval_loss"}
    assert list(tmp_path.glob("wandb/offline-run-*/*.wandb"))
    (logged,) = tmp_path.glob("mlruns/*/*/metrics/sonde/duration_s")
    assert float(logged.read_text().split()[1]) == pytest.approx(
        answer["run"]["duration_s"]
    )
    (kept,) = tmp_path.glob("mlruns/*/*/artifacts/sonde/report.json")
    assert json.loads(kept.read_text())["run"]["id"] == answer["run"]["id"]


# ---- W&B, MLflow, others ----------------------------------------------------------------


def test_a_report_in_wandb(lines, tmp_path):
    out = lines("wandb_offline.py")
    assert "wandb.init()" in out[0]
    said = json.loads(out[-1])
    truth = report(tmp_path / "run")
    forward = next(p for p in truth["phases"] if p["phase"] == "forward")
    for place in said.values():
        assert place["sonde/phase/forward_s"] == pytest.approx(forward["total_s"])
        assert place["sonde/metric/accuracy"] == 0.75
    assert None not in said["metrics"].values()
    # The artefact lies where W&B stages it until `wandb sync`, or in the run's file.
    (file,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    data = file.read_bytes()
    assert b"sonde-report" in data and b"operations.csv" in data


def test_a_report_in_mlflow(lines):
    out = lines("mlflow_store.py")
    assert "mlflow.start_run()" in out[0]
    known = json.loads(out[-1])
    assert known["params"] == {"batch": "32"}
    assert known["tags"]["sonde.name"] == "first"
    assert known["metrics"]["sonde/metric/top-1 ___"] == 75
    assert known["metrics"]["sonde/phase/forward_s"] >= 0.01
    assert sorted(known["files"]) == ["sonde/operations.csv", "sonde/report.json"]
    assert known["steps"] == [7, 8]


def test_other_loggers_get_operations_and_reports(lines, tmp_path):
    out = lines("other_loggers.py")
    assert "object is no logger" in out[0]
    said = json.loads(out[-1])
    (record,) = said["heard"]
    assert record["sonde/evolve/fitness"] == 0.5
    assert record["sonde/evolve/duration_s"] > 0
    assert "sonde/evolve/note" not in record
    (called,) = said["called"]
    assert called["x.evolve/fitness"] == 0.5
    assert said["mlflow"].keys() == said["metrics"].keys()
    (events,) = (tmp_path / "tb").glob("events*")
    assert b"sonde/duration_s" in events.read_bytes()


def test_nothing_is_imported_that_is_not_asked_for():
    """And what is missing is named; with an interpreter that has none of them."""
    script = """
import sys
before = set(sys.modules)
import sonde, sonde.integrations
heavy = {"torch", "wandb", "mlflow", "transformers", "lightning", "pytorch_lightning"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
for name in sorted(heavy - {"torch"}):
    sys.modules[name] = None  # as if not installed
for part in ("lightning", "huggingface"):
    try:
        getattr(sonde.integrations, part)
    except ImportError as error:
        print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env=package_path(),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "pip install lightning" in done.stdout
    assert "pip install transformers" in done.stdout
