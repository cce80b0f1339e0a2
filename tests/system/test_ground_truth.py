# serial: yes
"""Programs that know their own truth, against what the report says."""

import json

import pytest
from sonde_test import assert_consistent, operation, run, workload

STEPS = 20


@pytest.fixture(scope="module")
def times(tmp_path_factory):
    done = run(tmp_path_factory.mktemp("times") / "run", workload("known_times"))
    return json.loads(done.stdout), done.report()


def phase_ms(answer, name):
    return sum(1e3 * p["total_s"] for p in answer["phases"] if p["phase"] == name)


PATHS = {
    ("load",): ("load", STEPS, 5),
    ("load", "decode"): ("decode", STEPS, 2),
    ("forward",): ("forward", STEPS, 8),
    ("forward", "layer"): ("layer", 2 * STEPS, 2.5),
    ("backward",): ("backward", STEPS, 12),
    ("optimizer",): ("optimizer", STEPS, 3),
    ("evaluate",): ("evaluate", 1, 30),
    ("checkpoint",): ("checkpoint", 1, 10),
    ("worker",): ("worker", 50, 4),
}


@pytest.mark.parametrize("path", PATHS, ids=" › ".join)
def test_each_path_took_the_time_it_spun(times, path):
    truth, answer = times
    name, count, least_ms = PATHS[path]
    found = operation(answer, *path)
    assert found["count"] == count
    assert 1e3 * found["total_s"] == pytest.approx(truth[name], rel=0.005, abs=0.2)
    assert found["min_ms"] >= least_ms * 0.999
    assert found["mean_ms"] * count == pytest.approx(1e3 * found["total_s"], rel=1e-6)


@pytest.mark.parametrize(
    ("phase", "parts"),
    [
        ("data_loading", {"load": 1, "decode": -1}),
        ("preprocessing", {"decode": 1}),
        ("forward", {"forward": 1}),  # "layer" names no phase: it belongs to forward
        ("backward", {"backward": 1}),
        ("optimizer", {"optimizer": 1}),
        ("evaluation", {"evaluate": 1}),
        ("checkpoint", {"checkpoint": 1}),
    ],
)
def test_each_phase_of_the_main_thread_is_right_within_two_percent(times, phase, parts):
    truth, answer = times
    expected = sum(sign * truth[name] for name, sign in parts.items())
    assert phase_ms(answer, phase) == pytest.approx(expected, rel=0.02)


def test_time_outside_all_zones_is_other(times):
    truth, answer = times
    assert phase_ms(answer, "other") >= truth["outside"] * 0.98


def test_step_times_are_the_times_between_steps(times):
    truth, answer = times
    names = ("load", "forward", "backward", "optimizer", "outside")
    mean = sum(truth[n] for n in names) / STEPS
    step = answer["summary"]["step_ms"]
    assert step["count"] in (STEPS - 1, STEPS)
    assert step["mean"] == pytest.approx(mean, rel=0.02)


def test_self_and_children_make_up_the_total(times):
    assert_consistent(times[1])


def expected_counts(threads, repeats):
    per_thread = {("step",): 1, ("step", "forward"): 3, ("step", "forward", "layer"): 15}
    for depth in range(1, 10):
        per_thread[("tree",) * depth] = 2 ** (depth - 1)
    for depth in range(1, 7):
        per_thread[tuple(["ping", "pong"][i % 2] for i in range(depth))] = 1
    return {path: n * threads * repeats for path, n in per_thread.items()}


@pytest.mark.parametrize(("threads", "repeats"), [(1, 10), (4, 300), (16, 50), (40, 20)])
def test_counts_are_exact_by_path(tmp_path, threads, repeats):
    answer = run(tmp_path / "run", workload("known_counts"), threads, repeats).report()
    found = {tuple(o["path"]): o["count"] for o in answer["operations"]}
    assert found == expected_counts(threads, repeats)
    assert answer["summary"]["lost"] == 0
    assert_consistent(answer)


def test_counts_are_exact_when_hardly_any_disk_is_allowed(tmp_path):
    done = run(
        tmp_path / "run",
        workload("known_counts"),
        4,
        5000,
        options=["--max-trace", "8MiB"],
    )
    answer = done.report()
    found = {tuple(o["path"]): o["count"] for o in answer["operations"]}
    assert found == expected_counts(4, 5000)
    assert answer["summary"]["lost"] == 0
    assert_consistent(answer)


def test_values_and_samples_are_exact(tmp_path):
    answer = run(tmp_path / "run", workload("known_counts"), 3, 40).report()
    items = operation(answer, "step")["custom"]["items"]
    assert (items["count"], items["sum"]) == (3 * 40, 7 * 3 * 40)
    assert (items["min"], items["max"], items["last"]) == (7, 7, 7)
    assert answer["summary"]["samples_per_s"] > 0


# after − before, peak − before
MEMORY = {
    ("flat",): (0, 0),
    ("grow",): (64, 64),
    ("outer",): (16, 48),
    ("outer", "inner"): (0, 32),
    ("spike",): (0, 96),
    ("low spike",): (0, 24),
    ("shrink",): (-64, 0),
}


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    done = run(tmp_path_factory.mktemp("memory") / "run", workload("known_memory"))
    records = {r["name"]: r for r in map(json.loads, done.stdout.splitlines())}
    return records, done.report()


@pytest.mark.parametrize("path", MEMORY, ids=" › ".join)
def test_memory_of_an_operation_is_what_it_mapped(memory, path):
    records, answer = memory
    after, peak = MEMORY[path]
    found = operation(answer, *path)
    before = found["mem_before_mb"]
    assert found["mem_after_mb"] - before == pytest.approx(after, abs=2)
    assert found["mem_peak_mb"] - before == pytest.approx(peak, abs=3)
    record = records[path[-1]]
    assert record["before"] == pytest.approx(before, abs=0.1)
    assert record["after"] == pytest.approx(found["mem_after_mb"], abs=0.1)
    assert record["peak"] == pytest.approx(found["mem_peak_mb"], abs=0.1)


def test_cpu_time_of_an_operation_is_its_own(memory):
    records, answer = memory
    sleeper = operation(answer, "low spike")
    assert sleeper["total_s"] > 0.3
    assert sleeper["cpu_s"] < 0.2
    assert sleeper["cpu_s"] == pytest.approx(records["low spike"]["cpu_s"], abs=0.01)


def test_a_plain_zone_has_no_memory_rather_than_none_used(times):
    found = operation(times[1], "forward")
    assert found["mem_before_mb"] is None
    assert found["mem_peak_mb"] is None
    assert found["cpu_s"] is None
