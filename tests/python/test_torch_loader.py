"""torch's data loaders under `sonde run`: nothing changes for the program, and every batch
and sample is counted."""

import json
from pathlib import Path

import pytest
from conftest import python, runner

pytest.importorskip("torch")
SAME = Path(__file__).with_name("loader_same.py")

# dataset, workers, epochs, batches, samples made, of them looked at, failures
KINDS = [
    ("Map", 2, 6, 22, 22, 0),  # shuffled
    ("Map", 1, 3, 3, 3, 0),  # no batches
    ("Map", 1, 4, 11, 11, 0),  # own batches
    ("Map", 1, 1, 4, 7, 1),  # bad sample
    ("Map", 1, 0, 0, 4, 1),  # bad collate
    ("Stream", 2, 6, 14, 14, 0),
    ("Stream", 1, 2, 4, 5, 1),  # bad stream
    ("WholeBatches", 1, 2, 6, None, 0),
    ("Subset", 1, 3, 5, 5, 0),
    ("ConcatDataset", 1, 2, 4, 4, 0),
    ("TensorDataset", 1, 3, 7, 7, 0),
    ("Map", 2, 4, 8, 8, 0),  # left early
]


@pytest.fixture(scope="module")
def same(tmp_path_factory):
    """The program's output without Sonde, and its report with it."""
    tmp_path = tmp_path_factory.mktemp("same")
    answer = runner(tmp_path)(SAME.read_text())
    plain = python(tmp_path / "script0.py", cwd=tmp_path)
    notes = (tmp_path / "run0" / "python.jsonl").read_text().splitlines()
    return plain.stdout, answer, [json.loads(n) for n in notes]


def test_programs_see_no_difference(same):
    plain, answer, _ = same
    assert answer.stdout.splitlines() == plain.splitlines()
    assert "bad stream" in plain and plain.count("Traceback") >= 8


def counted(loader):
    samples = loader["sample_ms"]
    return (
        loader["dataset"],
        loader["epochs"],
        loader["batches"],
        loader["samples"],
        samples["count"] if samples else None,
        loader["failed"],
    )


def test_without_workers_everything_is_counted(same):
    loaders = [x for x in same[1]["loaders"] if x["num_workers"] == 0]
    kinds = [counted(x) for x in loaders]
    start = next(i for i in range(len(kinds)) if kinds[i] == KINDS[0])
    assert kinds[start : start + len(KINDS)] == KINDS
    for loader in loaders[start : start + len(KINDS)]:
        names = {t["name"] for t in loader["transforms"]}
        has = loader["dataset"] in ("Map", "Subset", "ConcatDataset")
        assert names == ({"Noise", "double"} if has else set())
        for transform in loader["transforms"]:
            assert not has or transform["count"] > 0


def test_with_workers_everything_is_counted(same):
    loaders = [x for x in same[1]["loaders"] if x["num_workers"] > 0]
    loaders = loaders[1:]  # the first is of show_freed()
    for loader, kind in zip(loaders, KINDS):
        assert loader["dataset"] == kind[0] and loader["epochs"] == kind[1]
        assert all(w["unheard"] == 0 for w in loader["workers"])
        made = sum(w["samples"] for w in loader["workers"])
        if loader["failed"] == 0:
            # A stream ends in each worker with a batch of its own.
            assert loader["batches"] == kind[2] or loader["iterable"]
            assert loader["samples"] == kind[3]
            assert made >= kind[3]
    persistent, stream = loaders[len(KINDS) : len(KINDS) + 2]
    assert persistent["persistent_workers"] and counted(persistent)[1:4] == (2, 6, 22)
    assert stream["persistent_workers"] and counted(stream)[3] == 14
    for loader in (persistent, stream):
        assert [w["processes"] for w in loader["workers"]] == [1, 1]
        assert all(e["exhausted"] for e in loader["epoch_list"])


def test_spawned_workers_are_heard(same):
    spawned = [x for x in same[1]["loaders"] if x["start_method"] == "spawn"]
    assert len(spawned) == 1
    assert spawned[0]["workers"][0]["samples"] == 5
    assert spawned[0]["sample_ms"]["count"] == 5


def test_nothing_of_ours_failed(same):
    assert [n for n in same[2] if n["kind"] == "problem"] == []
