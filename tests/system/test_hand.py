# labels: no_asan
"""Programs without a loader, or whose batches have to be looked at: what is told of them.
Each program counts itself."""
# timeout: 300

import json
import subprocess
from pathlib import Path

import pytest
from sonde_test import SOURCE, environment, run

PYTHON = "/usr/bin/python3"


def has_torch():
    test = subprocess.run([PYTHON, "-c", "import torch"], capture_output=True, check=False)
    return test.returncode == 0


pytestmark = pytest.mark.skipif(not has_torch(), reason="no torch for " + PYTHON)


def made(tmp_path_factory, name, *args):
    directory = tmp_path_factory.mktemp("hand") / "run"
    env = environment(SONDE_DIR=directory.parent / "store")
    return run(directory, PYTHON, str(name), *args, env=env)


def program(name):
    return SOURCE / "tests" / "system" / "progs" / name


def evidence(finding):
    return {e["metric"]: e for e in finding["evidence"]}


def finding(answer, name):
    return next((b for b in answer["bottlenecks"] if b["id"] == name), None)


@pytest.fixture(scope="module")
def by_hand(tmp_path_factory):
    return made(tmp_path_factory, program("by_hand.py"))


def test_loading_by_hand_is_input_and_says_how_it_is_known(by_hand):
    truth = json.loads(by_hand.stdout)
    input_findings = [b for b in by_hand.report()["bottlenecks"] if b["bound_by"] == "input"]
    assert input_findings, by_hand.report()["bottlenecks"]
    share = evidence(input_findings[0])["input_share"]
    # Stacks are samples of a short run on a machine with others on it.
    assert share["value"] == pytest.approx(truth["share"], abs=0.25)
    assert "no loader" in share["source"] or "I/O calls" in share["source"]
    # What imports read is no data, and no advice is about it.
    assert not [b for b in input_findings if "installed modules" in b["recommendation"]]
    assert evidence(input_findings[0]).get("read_time_share", {"value": 0})["value"] < 1


def test_calls_of_steps_are_counted_and_only_those(by_hand):
    truth = json.loads(by_hand.stdout)
    known = {}
    for b in by_hand.report()["bottlenecks"]:
        known.update(evidence(b))
    # np.load opens each file once; the fifty batches behind the last step are not here.
    assert known["opens_per_step"]["value"] == pytest.approx(truth["files"], rel=0.1)
    if "looks_per_step" in known:
        assert known["looks_per_step"]["value"] >= truth["files"]


@pytest.mark.parametrize(
    ("way", "workers"), [("sequence", 2), ("mask", 0), ("limit", 0), ("first", 1)]
)
def test_padding_is_what_the_program_counted(tmp_path_factory, way, workers):
    done = made(tmp_path_factory, program("padded.py"), way, str(workers))
    truth = json.loads(done.stdout)
    found = finding(done.report(), "padding_waste")
    assert found, done.report()["bottlenecks"]
    # Masks are counted in some batches, and batches made ahead may not be used.
    value = evidence(found)["padding_share"]["value"]
    assert value == pytest.approx(truth["padding"], abs=1e-5 if way == "sequence" else 0.05)


def test_batches_sliced_by_hand_have_the_rows_the_model_sees(tmp_path_factory):
    name = SOURCE / "workloads" / "sick" / "spring_regression.py"
    done = made(tmp_path_factory, name, "--samples", "10240")
    found = finding(done.report(), "batch_too_small")
    assert found, done.report()["bottlenecks"]
    assert "at most 2 rows" in found["description"]
    batch = evidence(found)["batch_size"]
    assert batch["value"] == pytest.approx(2)
    assert "no loader" in batch["source"]


def beside_training(folders, way):
    file = folders.mktemp("journal") / "rows"
    done = made(folders, program("journal.py"), way, str(file))
    return done.report(), float(Path(f"{file}.truth").read_text())


def test_a_journal_by_hand_in_every_step_is_logging(tmp_path_factory):
    answer, share = beside_training(tmp_path_factory, "journal")
    found = finding(answer, "logging_stall")
    assert found, answer["bottlenecks"]
    assert "in Journal.row" in found["description"]
    # Stacks are samples of a short run on a machine with others on it.
    assert evidence(found)["logging_share"]["value"] == pytest.approx(share, abs=0.25)
    # The whole of Journal.note() would go, and no larger batch would make it less.
    assert found["predicted_gain"]["high"] >= 0.7 * share
    assert not finding(answer, "batch_too_small")


@pytest.mark.parametrize("way", ["simulate", "epochs", "results", "test"])
def test_not_all_that_writes_beside_training_is_logging(tmp_path_factory, way):
    answer, _ = beside_training(tmp_path_factory, way)
    assert not finding(answer, "logging_stall"), answer["bottlenecks"]
