# labels: no_asan
"""Deterministic metrics of the gate: system calls, FLOPs, zone calls; one more is one more.

The truth of system calls is a static program that makes a known number of them: runs of it
differ by what was asked for, to the call.
"""

import json
import subprocess

import pytest
from sonde_test import SONDE, environment, program, report, run, sonde

CALLS = program("known_calls")
TOLD = program("flops_told")


@pytest.fixture(scope="module")
def counter():
    """Skips where the kernel does not let us count (sonde doctor tries it); CI's does."""
    checks = json.loads(sonde("doctor", "--json", check=False).stdout)["checks"]
    (found,) = [c for c in checks if c["id"] == "syscalls"]
    if found["state"] != "ok":
        pytest.skip(found["why"])


needs_counter = pytest.mark.usefixtures("counter")


@pytest.fixture
def here(tmp_path):
    env = environment(SONDE_DIR=tmp_path / ".sonde", HOME=tmp_path, GIT_CONFIG_NOSYSTEM=1)

    def go(*words, **options):
        return sonde(*words, cwd=tmp_path, env=env, check=False, **{"timeout": 150, **options})

    go.path = tmp_path
    return go


def check(here, metric, baseline, now, runs=2):
    """The gate on two commands: one is measured and stored, the other compared with it."""
    done = here("baseline", "set", "b", "-n", runs, "-w", 0, "-m", metric.split("=")[0], "--", *baseline)
    assert done.returncode == 0, done.stderr
    document = json.loads(here("baseline", "export", "b").stdout)
    (here.path / "b.json").write_text(json.dumps(document))
    done = here("check", "--json", "-b", "b.json", "-m", metric, "-n", runs, "-w", 0, "--", *now)
    assert done.returncode in (0, 1, 3), done.stderr
    (answer,) = json.loads(done.stdout)["metrics"]
    return done.returncode, answer


# ---- System calls ------------------------------------------------------------------------


def counted(directory, *words, options=()):
    answer = run(directory, CALLS, *words, options=["--syscalls", *options]).report()
    (row,) = [p for p in answer["provenance"] if p["metric"] == "syscalls"]
    assert row["status"] == "measured" and row["resolution"] == "exact"
    return answer["summary"]["syscalls"]


@needs_counter
def test_a_thousand_more_system_calls_are_a_thousand_more(tmp_path):
    few = counted(tmp_path / "a", 5000)
    assert counted(tmp_path / "b", 5000) == few  # the same program, the same number
    assert counted(tmp_path / "c", 6000) == few + 1000
    assert 5000 <= few < 5100  # all of them, and little else


@needs_counter
@pytest.mark.parametrize("who", ["forks", "threads"])
def test_children_and_threads_are_counted(tmp_path, who):
    few = counted(tmp_path / "a", 2000, who, 3)
    many = counted(tmp_path / "b", 3000, who, 3)
    slack = 12 if who == "threads" else 0  # who joins may have to wait, or not
    assert abs(many - few - 3 * 1000) <= slack
    assert 6000 <= few < 6300


@needs_counter
def test_the_gate_sees_one_system_call_more(here):
    same = check(here, "syscalls=0%", [CALLS, 1000], [CALLS, 1000])
    assert same[0] == 0 and same[1]["exact"] is True and same[1]["ratio"] == 1
    more = check(here, "syscalls=0%", [CALLS, 1000], [CALLS, 1001])
    assert more[0] == 1 and more[1]["exact"] is True
    assert more[1]["now"][0] - more[1]["baseline"][0] == 1
    less = check(here, "syscalls=0%", [CALLS, 1000], [CALLS, 999])
    assert less[0] == 0


@needs_counter
def test_a_profile_beside_it_does_not_change_the_count(here):
    """Allocations need the preloaded library, whose calls are not the program's."""
    command = ["/bin/cat", "/dev/null"]
    done = here("baseline", "set", "alone", "-n", 2, "-w", 0, "-m", "syscalls", "--", *command)
    assert done.returncode == 0, done.stderr
    words = ["baseline", "set", "beside", "-n", 2, "-w", 0, "-m", "syscalls", "-m", "allocations", "-m", "wall"]
    assert here(*words, "--", *command).returncode == 0
    counts = [json.loads(here("baseline", "export", name).stdout)["metrics"] for name in ("alone", "beside")]
    assert counts[0]["syscalls"] == counts[1]["syscalls"] and counts[0]["syscalls"][0] > 5
    assert len(counts[1]["allocations"]) == 2 and len(counts[1]["wall"]) == 2


@needs_counter
def test_nobody_counts_unless_asked(tmp_path):
    answer = run(tmp_path / "a", CALLS, 10).report()
    assert answer["summary"]["syscalls"] is None
    (row,) = [p for p in answer["provenance"] if p["metric"] == "syscalls"]
    assert row["status"] == "unavailable" and "--syscalls" in row["method"]
    assert not list((tmp_path / "a").glob("syscalls-*"))


def test_where_it_is_forbidden_it_is_said_and_the_program_runs(here):
    """perf_event_open fails as in a container: no count, which is not a count of zero."""
    no_perf = program("no_perf")
    words = ["run", "-q", "-o", here.path / "r", "--syscalls", "--", CALLS, 10]
    done = subprocess_run(here, [no_perf, SONDE, *words])
    assert done.returncode == 0, done.stderr
    answer = report(here.path / "r")
    assert answer["summary"]["syscalls"] is None
    assert any("system calls could not be counted: " in note for note in answer["notes"])
    done = subprocess_run(here, [no_perf, SONDE, "check", "-b", "x", "-m", "syscalls", "--", CALLS])
    assert done.returncode == 2
    assert "cannot be counted here: " in done.stderr and "io_calls" in done.stderr


def subprocess_run(here, words):
    return subprocess.run(list(map(str, words)), cwd=here.path, env=environment(SONDE_DIR=here.path / ".s"), check=False,
                          capture_output=True, text=True, timeout=100)  # fmt: skip


# ---- FLOPs, calls, bytes -----------------------------------------------------------------


def test_flops_are_those_of_a_step_times_steps_or_the_total_told(tmp_path):
    summary = run(tmp_path / "a", TOLD, 20, 1e9).report()["summary"]
    assert summary["flops"] == 20e9 and summary["flops_per_step"] == 1e9
    summary = run(tmp_path / "b", TOLD, 20, 1e9, 7e12).report()["summary"]
    assert summary["flops"] == 7e12
    summary = run(tmp_path / "c", TOLD, 20).report()["summary"]
    assert summary["flops"] is None


def test_the_gate_compares_flops_exactly(here):
    same = check(here, "flops=0%", [TOLD, 20, 1e9], [TOLD, 20, 1e9])
    assert same[0] == 0 and same[1]["exact"] is True and same[1]["now"] == [20e9, 20e9]
    more = check(here, "flops=0%", [TOLD, 20, 1e9], [TOLD, 20, 1e9 + 1])
    assert more[0] == 1 and more[1]["now"][0] - more[1]["baseline"][0] == 20


def test_calls_of_all_zones_and_bytes_by_their_short_names(here):
    same = check(here, "calls=0%", [TOLD, 20], [TOLD, 20])
    assert same[0] == 0 and same[1]["now"] == [40, 40]
    more = check(here, "calls=0%", [TOLD, 20], [TOLD, 21])
    assert more[0] == 1 and more[1]["now"] == [42, 42]
    bytes_ = check(here, "bytes=0%", [TOLD, 20], [TOLD, 20])
    assert bytes_[0] == 0 and bytes_[1]["name"] == "allocated_bytes"


def test_what_no_run_tells_is_an_error_that_says_what_to_do(here):
    here("baseline", "set", "b", "-n", 1, "-w", 0, "--", TOLD, 3)
    for metric, said in (
        ("flops", "flops_per_step"),
        ("metrics.loss", "no metric of that name"),
        ("calls.nothing", "no zone has that name"),
    ):
        done = here("check", "-b", "b", "-m", metric, "-w", 0, "--inconclusive", "pass", "--", TOLD, 3)
        assert done.returncode == 2 and "recorded in no run" in done.stderr, done.stderr
        assert said in done.stderr
    # Told after the change only: nothing to compare with, and how to get it.
    words = ["check", "--json", "-b", "b", "-m", "flops", "-n", 2, "-w", 0, "--", TOLD, 3, 5]
    (here.path / "edited.py").write_text("x = 1\n")
    done = here(*words)
    why = json.loads(done.stdout)["metrics"][0]["why"]
    assert done.returncode == 3 and "not measured before" in why and "baseline set" in why


# ---- Allocations


def test_allocations_are_counted_one_by_one_however_many_there_are(here):
    """Elsewhere a busy thread is counted in spells (SONDE_ALLOC_EXACT_S); counts of a gate
    are not estimates."""
    told = here.path / "told"
    command = ["/bin/sh", "-c", f"printenv SONDE_ALLOC_EXACT_S > {told}"]
    done = here("baseline", "set", "b", "-n", 2, "-w", 0, "-m", "allocations", "--", *command)
    assert done.returncode == 0, done.stderr
    assert told.read_text() == "inf\n"
