# labels: no_asan
"""What a new user gets wrong with the store, the search and the gate, and what is said then."""

import json
import sqlite3
import subprocess
import sys
import textwrap

import pytest
from sonde_test import SONDE, environment, program, sonde

# Takes 60 MB more where Sonde's library stands in front of libc: the cost of a profile, made
# large enough that no noise hides it.
PROFILED = """\
import os
profiled = "libsonde-preload" in open("/proc/self/maps").read()
filled = b"x" * ((80 if profiled else 20) << 20)
"""


@pytest.fixture
def here(tmp_path):
    env = environment(SONDE_DIR=tmp_path / ".sonde")

    def go(*words, **options):
        return sonde(*words, cwd=tmp_path, env=env, check=False, **{"timeout": 150, **options})

    go.path = tmp_path
    return go


@pytest.fixture
def five(here):
    for accuracy in (0.5, 0.7, 0.9):
        assert here("log", "-m", f"accuracy={accuracy}", "-p", "batch=32", "-p", "opt=adam",
                    "--duration", "2s", "--memory", "10MB").returncode == 0  # fmt: skip
    here("log", "-m", "accuracy=nan")
    here("log", "-m", "accuracy=-inf")
    return here


def test_a_misspelt_name_is_told(five):
    for wrong, right in [
        ("metrics.acuracy > 0.1", "metrics.accuracy"),
        ("metric.accuracy > 0.1", "metrics.accuracy"),
        ("acuracy > 0.1", "accuracy"),
        ('{"params.bacth": 32}', "params.batch"),
    ]:
        done = five("search", wrong)
        assert done.returncode == 1 and f"did you mean {right}?" in done.stderr, done.stderr
    assert "did you mean" in five("search", "--sort", "metrics.acc").stderr
    done = five("trends", "--metric", "metrics.acuracy")
    assert "did you mean metrics.accuracy?" in done.stderr and "nan" not in done.stdout
    done = five("trends", "--against", "params.batsch")
    assert "did you mean params.batch?" in done.stderr


def test_names_that_are_there_are_not_complained_about(five):
    for words in (["accuracy > 5"], ["duration_s > 1e9"], ["params.nope is missing and accuracy > 5"],
                  ["--sort", "duration_s"], ["--sort", "batch"]):  # fmt: skip
        assert "did you mean" not in five("search", *words).stderr


def test_an_answer_that_cannot_be_written_is_a_failure(five):
    for words in (["search", "--format", "csv"], ["search"], ["trends"]):
        done = five(*words, "-o", "no/such/folder/x")
        assert done.returncode == 2 and "no such file" in done.stderr
    done = five("store", "backup", "no/such/folder/x")
    assert done.returncode == 2 and "no such file" in done.stderr


def test_likeness_names_what_is_the_same(five):
    five("log", "--id", "other", "-m", "accuracy=0.1", "-p", "batch=64", "-p", "opt=sgd", "--duration", "9s")
    first = json.loads(five("search", "--json", "params.batch = 32").stdout)["experiments"][0]["id"]
    words = five("search", "params.batch = 32", "--like", first, "--explain", "-n", 1).stdout
    assert "same in 3 of 4: " in words and "params.batch 32" in words and "params.opt adam" in words


def test_views_do_not_count_what_is_no_number_as_zero(five):
    with sqlite3.connect(five.path / ".sonde" / "sonde.db") as db:
        (mean, count) = db.execute("SELECT avg(value), count(value) FROM metrics WHERE value > -1").fetchone()
        assert count == 3 and mean == pytest.approx(0.7)
        order = [v for (v,) in db.execute("SELECT accuracy FROM experiments ORDER BY accuracy DESC")]
    assert order == [0.9, 0.7, 0.5, float("-inf"), None]


def test_an_experiment_that_is_not_there_is_told_as_such(five):
    for words in (["log", "--run", "nope", "-m", "a=1"], ["search", "--like", "nope"]):
        done = five(*words)
        assert done.returncode == 2 and "no run 'nope'" in done.stderr and "no experiment" in done.stderr


def test_the_store_of_a_network_file_system_has_a_rollback_journal(tmp_path):
    env = environment(SONDE_DIR=tmp_path / ".sonde", LD_PRELOAD=program("nfs_everywhere.so"))
    writers = [subprocess.Popen([SONDE, "log", "-q", "-m", f"a={i}"], env=env) for i in range(8)]
    assert [w.wait(timeout=100) for w in writers] == [0] * 8
    told = sonde("store", env=env).stdout
    assert "journal      delete" in told and "experiments  8" in told
    assert not list((tmp_path / ".sonde").glob("sonde.db-*"))  # no shared memory, no log
    assert "sound" in sonde("store", "verify", env=env).stdout


def test_quiet_runs_are_whole_in_the_store_when_their_directory_goes(tmp_path):
    env = environment(SONDE_DIR=tmp_path / ".sonde", SONDE_KEEP_RUNS=1)
    for _ in range(3):
        sonde("run", "-q", "--", program("flops_told"), 3, 10, 30, env=env)
    assert len(list((tmp_path / ".sonde" / "runs").iterdir())) == 1
    with sqlite3.connect(tmp_path / ".sonde" / "sonde.db") as db:  # before anybody looks
        gone = "FROM runs WHERE directory IS NULL OR directory = ''"
        assert db.execute(f"SELECT count(*) {gone} AND partial = 0").fetchone() == (2,)
        assert db.execute(f"SELECT count(*) FROM profiles WHERE run IN (SELECT id {gone})").fetchone() == (2,)
        assert db.execute(f"SELECT count(*) FROM metrics WHERE run IN (SELECT id {gone})").fetchone()[0] >= 2


def test_no_directory_goes_while_the_store_is_damaged(tmp_path):
    env = environment(SONDE_DIR=tmp_path / ".sonde", SONDE_KEEP_RUNS=1)
    sonde("run", "-q", "--", "true", env=env)
    for file in (tmp_path / ".sonde").glob("sonde.db*"):
        file.write_bytes(b"rubbish" * 1000) if file.name == "sonde.db" else file.unlink()
    sonde("run", "-q", "--", "true", env=env)
    sonde("run", "-q", "--", "true", env=env)
    assert len(list((tmp_path / ".sonde" / "runs").iterdir())) == 3
    done = sonde("store", "verify", "--repair", env=env)
    assert "3 read again" in done.stdout


def test_a_run_that_failed_is_no_baseline(here):
    here("run", "-q", "--", "sh", "-c", "exit 7")
    done = here("baseline", "set", "good", "@last")
    assert done.returncode == 2 and "ended with status 7" in done.stderr
    here("run", "-q", "--", "true")
    assert here("baseline", "set", "good", "@last").returncode == 0


def memory(here, baseline, *metrics):
    """The gate's word on `memory` against stored samples."""
    words = [w for m in metrics for w in ("-m", m)]
    done = here("check", "--json", "-b", baseline, *words, "-n", 8, "-w", 0, "--", sys.executable, "p.py")
    return json.loads(done.stdout)["metrics"][0]


def test_stored_samples_meet_runs_that_were_measured_as_they_were(here):
    (here.path / "p.py").write_text(textwrap.dedent(PROFILED))
    for name, metrics in (("with", ["-m", "memory", "-m", "allocations"]), ("without", ["-m", "memory"])):
        done = here("baseline", "set", name, "-n", 8, "-w", 0, *metrics, "--", sys.executable, "p.py")
        assert done.returncode == 0, done.stderr
        here("baseline", "export", name, "-o", f"{name}.json")
    same = memory(here, "with.json", "memory")
    assert same["verdict"] == "pass" and min(same["now"]) > 60
    assert json.loads((here.path / "with.json").read_text())["profiled"] is True
    same = memory(here, "without.json", "memory", "allocations")
    assert same["verdict"] == "pass" and max(same["now"]) < 60


def test_a_program_without_io_made_no_io_calls(here):
    done = here("baseline", "set", "b", "-n", 2, "-w", 0, "-m", "io_calls", "-m", "allocations", "--",
                program("alloc_fixed"))  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(here("baseline", "export", "b").stdout)["metrics"]
    assert told["io_calls"] == [0, 0] and told["allocations"] == [1000, 1000]


def test_markdown_tells_the_smallest_effect(here):
    samples = {"wall": {"baseline": [1.0, 1.1, 1.2, 1.0, 1.1, 1.2, 1.0, 1.1], "now": [1.0, 1.1, 1.2, 1.1] * 2}}
    (here.path / "s.json").write_text(json.dumps(samples))
    assert "Could see wall: a slowdown of" in here("check", "--samples", "s.json", "--format", "markdown").stdout
