"""Children of every kind record into files of their own; nothing is counted twice."""

import pytest
from sonde_test import assert_consistent, counts_by_path, disk_bytes, program, run, traces

MIB = 1 << 20


def fork_kind(tmp_path, kind, zones=50):
    done = run(tmp_path / "run", program("fork_kinds"), kind, zones, check=False)
    if done.returncode == 77:
        pytest.skip("this libc has no _Fork")
    assert done.returncode == 0, done.stderr
    answer = done.report()
    assert_consistent(answer)
    return answer, int(done.stdout), done.directory


@pytest.mark.parametrize("kind", ["fork", "exec", "vfork", "clone", "_Fork", "thread"])
@pytest.mark.parametrize("zones", [50, 50_000], ids=["few", "many"])
def test_parent_and_child_are_both_counted_exactly(tmp_path, kind, zones):
    answer, child, directory = fork_kind(tmp_path, kind, zones)
    counts = counts_by_path(answer)
    assert counts[("parent",)] == 100
    assert counts[("parent", "inside")] == 100
    assert counts[("around",)] == 1
    assert counts[("around", "parent")] == 1
    assert counts[("child",)] == zones
    assert counts[("child", "inside")] == zones
    assert counts[("after",)] == 30
    assert len(traces(directory)) == 2
    assert child in {p["pid"] for p in answer["processes"]}
    assert answer["summary"]["lost"] == 0


def test_a_grandchild_is_counted_too(tmp_path):
    answer, _, directory = fork_kind(tmp_path, "nested")
    counts = counts_by_path(answer)
    assert counts[("child",)] == 50
    assert counts[("child again",)] == 50
    assert counts[("grandchild",)] == 50
    assert len(traces(directory)) == 3


def test_the_zone_open_around_a_fork_belongs_to_the_parent_alone(tmp_path):
    answer, *_ = fork_kind(tmp_path, "fork")
    counts = counts_by_path(answer)
    assert counts[("around",)] == 1
    assert ("around", "child") not in counts


@pytest.mark.parametrize("zones", [3, 2000])
def test_four_hundred_workers_are_all_there_and_the_disk_stays_small(tmp_path, zones):
    done = run(tmp_path / "run", program("many_workers"), 400, zones)
    answer = done.report()
    workers = set(map(int, done.stdout.split()))
    assert len(workers) == 400
    assert workers <= {p["pid"] for p in answer["processes"]}
    counts = counts_by_path(answer)
    assert counts[("work",)] == 400 * zones
    assert counts[("main",)] == 1
    assert answer["summary"]["lost"] == 0
    # 401 processes; a dead one's file is folded and shrunk.
    assert disk_bytes(done.directory) < 128 * MIB


def test_four_hundred_workers_fit_a_small_budget(tmp_path):
    options = ["--max-trace", "64MiB"]
    done = run(tmp_path / "run", program("many_workers"), 400, 2000, options=options)
    counts = counts_by_path(done.report())
    assert counts[("work",)] == 400 * 2000
    assert disk_bytes(done.directory) < 72 * MIB
