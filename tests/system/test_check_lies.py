# labels: no_asan
"""How a gate could lie, and that it does not: other settings, edited trees, crashes, missing numbers,
counts that vary, a budget or a signal in the middle of a run."""

import json
import os
import signal
import subprocess
import time

import pytest
from sonde_test import SONDE, environment, program, sonde

PYTHON = "/usr/bin/python3"


@pytest.fixture
def here(tmp_path):
    tree, scratch = tmp_path / "tree", tmp_path / "scratch"
    tree.mkdir()
    scratch.mkdir()
    (tree / "work.py").write_text("sum(range(100000))\n")
    env = environment(
        SONDE_DIR=tree / ".sonde", HOME=tmp_path, TMPDIR=scratch, GIT_CONFIG_NOSYSTEM=1
    )
    for name in ("OMP_NUM_THREADS", "PYTHONPATH", "VIRTUAL_ENV"):
        env.pop(name, None)

    def go(*words, **changes):
        return sonde(*words, cwd=tree, env={**env, **changes}, check=False, timeout=150)

    def git(*words):
        identity = ["-c", "user.email=a@b.c", "-c", "user.name=x"]
        subprocess.run(["git", *identity, *words], cwd=tree, check=True, env=env, capture_output=True)

    def commit():
        git("init", "-q")
        git("add", "-A")
        git("commit", "-qm", "one")

    go.tree, go.scratch, go.env, go.git, go.commit = tree, scratch, env, git, commit
    return go


def check(here, *words, **changes):
    done = here("check", "--json", *words, **changes)
    assert done.returncode in (0, 1, 3), done.stderr
    return done.returncode, json.loads(done.stdout)


def worktrees(here):
    done = subprocess.run(["git", "worktree", "list"], cwd=here.tree, env=here.env,
                          capture_output=True, text=True)  # fmt: skip
    return len(done.stdout.splitlines())


def running(word):
    """Processes with this word in their command line."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                line = file.read()
            with open(f"/proc/{pid}/stat") as file:
                state = file.read().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if word.encode() in line.split(b"\0") and state not in "ZX":
            found.append(int(pid))
    return found


def wait_until(true, seconds=60):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


# ---- Signals and budget ------------------------------------------------------------------


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_interrupted_in_the_middle_it_leaves_nothing(here, sent):
    here.commit()
    mark = f"60{os.getpid()}.{int(sent)}"  # seconds nobody else sleeps
    words = [SONDE, "check", "-b", "HEAD", "--", "sh", "-c", f"sleep {mark} & sleep {mark}; true"]
    gate = subprocess.Popen(list(map(str, words)), cwd=here.tree, env=here.env,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)  # fmt: skip
    wait_until(lambda: len(running(mark)) >= 2)
    assert worktrees(here) == 2
    gate.send_signal(sent)
    _, said = gate.communicate(timeout=60)
    assert gate.returncode == -sent and "nothing is decided" in said
    assert running(mark) == []
    assert worktrees(here) == 1 and list(here.scratch.iterdir()) == []


def test_interrupted_while_it_builds_it_leaves_nothing(here):
    here.commit()
    mark = f"61{os.getpid()}"
    words = [SONDE, "check", "-b", "HEAD", "--build", f"sleep {mark} & sleep {mark}", "--", "true"]
    gate = subprocess.Popen(list(map(str, words)), cwd=here.tree, env=here.env,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)  # fmt: skip
    wait_until(lambda: len(running(mark)) >= 2)
    gate.send_signal(signal.SIGTERM)
    gate.communicate(timeout=60)
    assert gate.returncode == -signal.SIGTERM and running(mark) == []
    assert worktrees(here) == 1 and list(here.scratch.iterdir()) == []


def test_a_change_that_hangs_is_ended_by_the_budget(here):
    here("baseline", "set", "good", "-n", "1", "-w", "0", "--", "true")
    mark = f"62{os.getpid()}"
    status, answer = check(here, "-b", "good", "-w", "0", "--budget", "1s", "--",
                           "sh", "-c", f"sleep {mark} & sleep {mark}")  # fmt: skip
    assert status == 3 and answer["count"] == 0 and answer["elapsed_s"] < 60
    assert "budget of 1.00 s is spent" in answer["metrics"][0]["why"]
    assert running(mark) == []


def test_a_budget_between_looks_judges_what_there_is(here):
    here("baseline", "set", "good", "-n", "1", "-w", "0", "--", "sleep", "0.1")
    status, answer = check(here, "-b", "good", "-w", "0", "--budget", "1s", "--", "sleep", "0.1")
    assert status == 3 and 0 < answer["count"] < 8
    why = answer["metrics"][0]["why"]
    assert "at least 8 are needed" in why and "budget" in why


def test_processes_left_running_are_told(here):
    here("baseline", "set", "good", "-n", "1", "-w", "0", "--", "true")
    mark = f"63{os.getpid()}"
    _, answer = check(here, "-b", "good", "-w", "0", "-t", "10000%", "--",
                      "sh", "-c", f"sleep {mark} >/dev/null 2>&1 &")  # fmt: skip
    for pid in running(mark):
        os.kill(pid, signal.SIGKILL)
    assert "leaves processes running" in answer["weaker"]


# ---- Programs that are not the same twice -------------------------------------------------


def moody(here, *steps):
    """A baseline of it that is rerun in turn; the first run sets the baseline, without warm-up."""
    (here.tree / "steps.txt").write_text(" ".join(map(str, steps)))
    command = [program("moody"), "steps.txt"]
    done = here("baseline", "set", "good", "-n", "1", "-w", "0", "-m", "steps", "--", *command)
    assert done.returncode == 0, done.stderr
    return command


def test_counts_that_vary_are_no_regression(here):
    # before, after; after, before: two pairs look like 100 against 101, exactly.
    command = moody(here, 100, 100, 101, 101, 100, 101, 100, 100, 101, *[100, 101, 101, 100] * 50)
    status, answer = check(here, "-b", "good", "-w", "0", "-m", "steps=0%", "--budget", "4s", "--", *command)
    assert status != 1 and answer["paired"] is True
    assert answer["metrics"][0]["exact"] is False or answer["count"] < 3


def test_counts_that_differ_always_are_one(here):
    command = moody(here, 100, *[100, 101, 101, 100] * 4)
    status, answer = check(here, "-b", "good", "-w", "0", "-m", "steps=0%", "--", *command)
    assert status == 1 and answer["metrics"][0]["exact"] is True and answer["count"] == 8


def test_counts_that_are_the_same_need_two_pairs(here):
    command = moody(here, 100)
    status, answer = check(here, "-b", "good", "-w", "0", "-m", "steps=0%", "--", *command)
    assert status == 0 and answer["count"] == 2


def test_a_metric_that_half_of_the_runs_lack_decides_nothing(here):
    command = moody(here, 100, *[100, 101] * 100)
    status, answer = check(here, "-b", "good", "-w", "0", "-m", "metrics.score", "--", *command)
    assert status == 3 and "missing in 4 of 8 measurements before, 4 of 8" in answer["metrics"][0]["why"]
    assert answer["count"] == 8  # more of the same would not help
    (here.tree / "steps.txt.runs").unlink()
    done = here("baseline", "set", "score", "-n", "4", "-w", "0", "-m", "metrics.score", "--", *command)
    assert "could not be measured in every run and is left out" in done.stderr


def test_one_run_that_crashes_is_an_error_not_a_verdict(here):
    command = moody(here, 100, 100, 100, 100, 100, -1)
    done = here("check", "--json", "-b", "good", "-w", "0", "-m", "wall", "-t", "10000%", "--", *command)
    assert done.returncode == 2 and "signal 6" in done.stderr and done.stdout == ""


# ---- Comparing like with like -------------------------------------------------------------


def test_samples_taken_with_other_settings_decide_nothing(here):
    command = [PYTHON, "work.py"]
    here("baseline", "set", "good", "-n", "8", "-m", "cpu", "--", *command, OMP_NUM_THREADS="1")
    (here.tree / "work.py").write_text("sum(range(100001))\n")
    words = ["-b", "good", "-m", "cpu", "-n", "8", "-t", "10000%", "--", *command]
    status, answer = check(here, *words, OMP_NUM_THREADS="8")
    assert status == 3 and "other settings" in answer["metrics"][0]["why"]
    assert "then OMP_NUM_THREADS=1, now OMP_NUM_THREADS=8" in answer["weaker"]
    assert check(here, *words, OMP_NUM_THREADS="1")[0] == 0


def test_a_run_edited_before_it_became_the_baseline_is_not_rerun(here):
    done = here("run", "-q", "--", PYTHON, "work.py")
    assert done.returncode == 0, done.stderr
    assert "check runs it again" in here("baseline", "set", "clean", "@last").stdout
    (here.tree / "work.py").write_text("sum(range(200000))\n")
    assert "will not be run again" in here("baseline", "set", "late", "@last").stdout
    words = ["-m", "wall", "-n", "2", "-w", "0", "--", PYTHON, "work.py"]
    assert check(here, "-b", "late", *words)[1]["paired"] is False


def test_an_upgraded_library_is_a_change(here):
    venv = here.tree.parent / "venv"
    packages = venv / "lib" / "python3.11" / "site-packages"
    (venv / "bin").mkdir(parents=True)
    packages.mkdir(parents=True)
    (venv / "bin" / "python3").symlink_to(PYTHON)
    (packages / "tensors-1.0.dist-info").mkdir()
    command = [venv / "bin" / "python3", "-S", "work.py"]
    here("baseline", "set", "good", "-n", "1", "-w", "0", "--", *command)
    words = ["-b", "good", "-w", "0", "--budget", "1ms", "--", *command]
    assert check(here, *words)[1]["paired"] is True
    (packages / "tensors-1.0.dist-info").rename(packages / "tensors-2.0.dist-info")
    answer = check(here, *words)[1]
    assert answer["paired"] is False and "have changed" in answer["weaker"]


def test_what_makes_both_sides_run_this_tree_is_told(here):
    here.commit()
    words = ["-b", "HEAD", "-w", "0", "--budget", "1ms", "--", PYTHON, "-S", "work.py"]
    assert check(here, *words)[1]["weaker"] is None
    answer = check(here, *words, PYTHONPATH=f"/nowhere:{here.tree}/src")[1]
    assert "PYTHONPATH names this tree" in answer["weaker"]
    assert check(here, *words, PYTHONPATH=f"{here.tree}2/src")[1]["weaker"] is None
    packages = here.tree / ".venv" / "lib" / "python3.11" / "site-packages"
    packages.mkdir(parents=True)
    venv = {"VIRTUAL_ENV": str(here.tree / ".venv"),
            "PATH": f"{here.tree}/.venv/bin:{here.env['PATH']}"}  # fmt: skip
    assert check(here, *words, **venv)[1]["weaker"] is None
    (packages / "__editable__.mine-1.0.pth").write_text(f"{here.tree}/src\n")
    assert "in place" in check(here, *words, **venv)[1]["weaker"]
