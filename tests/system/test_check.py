# labels: no_asan
"""The gate: finds what became slower, leaves alone what did not, says when it cannot tell.

The programs count what they do in CPU time or in calls, so that a busy machine does not decide
these tests: thresholds are far from the effects.
"""

import json
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest
from sonde_test import environment, sonde

PROGRAM = """\
import sys
def work(n):
    total = 0
    for i in range(n):
        total += i * i
    return total
work(int(%d * 1))
"""
PYTHON = "/usr/bin/python3"
SMALL, LARGE = 400_000, 4_000_000  # about 30 ms, 300 ms of CPU time


@pytest.fixture
def here(tmp_path):
    (tmp_path / "work.py").write_text(PROGRAM % SMALL)
    env = environment(SONDE_DIR=tmp_path / ".sonde", HOME=tmp_path, GIT_CONFIG_NOSYSTEM=1)

    def go(*words, **options):
        return sonde(*words, cwd=tmp_path, env=env, **{"check": False, "timeout": 250, **options})

    def git(*words):
        identity = ["-c", "user.email=a@b.c", "-c", "user.name=x"]
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, env=env,
                       capture_output=True)  # fmt: skip

    go.path, go.git = tmp_path, git
    return go


def check(here, *options, command=(PYTHON, "work.py")):
    done = here("check", "--json", *options, "--", *command)
    assert done.returncode in (0, 1, 3), done.stderr
    return done.returncode, json.loads(done.stdout)


def test_a_program_edited_to_be_slower_is_caught_from_stored_samples(here):
    done = here("baseline", "set", "good", "--runs", "8", "--metric", "cpu", "--", PYTHON, "work.py")
    assert done.returncode == 0, done.stderr
    (here.path / "work.py").write_text(PROGRAM % LARGE)
    status, answer = check(here, "-b", "good", "-m", "cpu", "--runs", "8")
    assert status == 1 and answer["verdict"] == "fail"
    assert answer["paired"] is False and "sources have changed" in answer["weaker"]
    metric = answer["metrics"][0]
    assert metric["ratio"] > 2 and metric["low"] > 1 and len(metric["baseline"]) == 8


def test_a_program_edited_to_be_slower_is_caught_from_a_commit(here):
    here.git("init", "-q")
    here.git("add", "work.py")
    here.git("commit", "-qm", "one")
    (here.path / "work.py").write_text(PROGRAM % LARGE)
    status, answer = check(here, "-b", "HEAD", "-m", "cpu", "--build", "touch built")
    assert status == 1 and answer["paired"] is True and answer["count"] in (8, 12, 20)
    assert "commit" in answer["baseline"] and not (here.path / "built").exists()
    trees = subprocess.run(["git", "worktree", "list"], cwd=here.path, capture_output=True, text=True)
    assert len(trees.stdout.splitlines()) == 1  # nothing is left behind
    done = here("check", "-b", "HEAD", "--build", "exit 7", "--", PYTHON, "work.py")
    assert done.returncode == 2 and "--build failed with status 7" in done.stderr


def test_the_same_program_passes_and_is_run_again_in_turn(here):
    here("baseline", "set", "good", "--runs", "1", "--metric", "cpu", "--", PYTHON, "work.py")
    status, answer = check(here, "-b", "good", "-m", "cpu", "-t", "300%")
    assert status == 0 and answer["paired"] is True
    assert "sources are unchanged" in answer["baseline"] and answer["weaker"] is None
    metric = answer["metrics"][0]
    assert metric["high"] < 4 and metric["smallest"] > 0


def test_counts_are_compared_exactly(here):
    command = ["sh", "-c", "head -c 100000 /dev/zero | wc -c >/dev/null"]
    here("baseline", "set", "io", "-n", "2", "-w", "0", "-m", "io_bytes", "--", *command)
    (here.path / "note.py").write_text("changed = 1")
    status, answer = check(here, "-b", "io", "-m", "io_bytes=0%", "-n", "2", command=command)
    assert status == 0 and answer["metrics"][0]["exact"] is True
    more = ["sh", "-c", "head -c 100001 /dev/zero | wc -c >/dev/null"]
    status, answer = check(here, "-b", "io", "-m", "io_bytes=0%", "-n", "2", command=more)
    assert status == 1 and answer["metrics"][0]["ratio"] > 1


def test_too_few_samples_are_inconclusive(here):
    here("baseline", "set", "few", "--runs", "3", "--metric", "cpu", "--", PYTHON, "work.py")
    (here.path / "work.py").write_text(PROGRAM % (SMALL + 1))
    options = ["-b", "few", "-m", "cpu", "-n", "8"]
    status, answer = check(here, *options)
    assert status == 3 and "at least 8" in answer["metrics"][0]["why"]
    assert check(here, *options, "--inconclusive", "pass")[0] == 0
    assert check(here, *options, "--inconclusive", "fail")[0] == 1


def test_a_baseline_travels_as_a_file(here, tmp_path_factory):
    here("baseline", "set", "good", "--runs", "8", "--metric", "cpu", "--", PYTHON, "work.py")
    done = here("baseline", "export", "good", "-o", "perf.json")
    assert done.returncode == 0, done.stderr
    document = json.loads((here.path / "perf.json").read_text())
    assert document["schema"] == "sonde.baseline/1" and len(document["metrics"]["cpu"]) == 8
    # A runner without a store.
    runner = tmp_path_factory.mktemp("runner")
    (runner / "work.py").write_text(PROGRAM % LARGE)
    (runner / "perf.json").write_text(json.dumps(document))
    env = environment(SONDE_DIR=runner / "none")
    words = ["check", "--json", "-b", "perf.json", "-m", "cpu", "-n", "8", "--", PYTHON, "work.py"]
    done = sonde(*words, cwd=runner, env=env, check=False)
    assert done.returncode == 1 and "it is a file" in json.loads(done.stdout)["weaker"]
    document["machine"] = "another one, 128 cores"
    (runner / "perf.json").write_text(json.dumps(document))
    done = sonde(*words, cwd=runner, env=env, check=False)
    assert done.returncode == 3 and "another machine" in json.loads(done.stdout)["metrics"][0]["why"]
    assert not (runner / "none").exists()


def samples(here, baseline, now, *options):
    text = json.dumps({"wall": {"baseline": baseline, "now": now}})
    return here("check", "--samples", "-", *options, input=text)


def test_formats_for_ci(here):
    slow, fast = [1.5 + i / 100 for i in range(10)], [1.0 + i / 100 for i in range(10)]
    done = samples(here, fast, slow, "--format", "junit")
    assert done.returncode == 1
    suite = ElementTree.fromstring(done.stdout)
    assert suite.get("failures") == "1" and suite[0][0].tag == "failure"
    assert "+4" in suite[0][0].get("message")
    done = samples(here, fast, fast, "--format", "junit")
    assert done.returncode == 0 and len(ElementTree.fromstring(done.stdout)[0]) == 0
    done = samples(here, fast[:3], slow[:3], "--format", "junit")
    assert done.returncode == 3 and ElementTree.fromstring(done.stdout)[0][0].tag == "skipped"
    text = samples(here, fast, slow, "--format", "markdown").stdout
    assert "failed" in text and "| wall |" in text
    assert "FAILED" in samples(here, fast, slow).stdout
    assert "COULD SEE" in samples(here, fast, slow).stdout


def test_mistakes_are_told(here):
    for words, said in (
        (["check", "--", "true"], "what to compare with"),
        (["check", "-b", "nothing", "--", "true"], "no baseline 'nothing'"),
        (["check", "-b", "x", "-m", "speed", "--", "true"], "no 'speed'"),
        (["check", "-b", "x", "-t", "much", "--", "true"], "percentage"),
        (["baseline", "rm", "nothing"], "no store"),
        (["baseline", "set"], "NAME"),
        (["check", "--samples", "/dev/null"], "wants"),
    ):
        done = here(*words)
        assert done.returncode == 2 and said in done.stderr, (words, done.stderr)
    (here.path / "bad.json").write_text('{"schema": "other"}')
    done = here("check", "-b", "bad.json", "--", "true")
    assert done.returncode == 2 and "schema" in done.stderr
    here("baseline", "set", "good", "-n", "1", "-w", "0", "--", "true")
    done = here("check", "-b", "good", "--", "false")
    assert done.returncode == 2 and "ended with status 1" in done.stderr
    assert "good" in here("baseline", "list").stdout
    assert here("baseline", "rm", "good").returncode == 0
