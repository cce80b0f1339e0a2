"""What `sonde run` leaves on disk, where, and who may read it."""

import json
import os
import stat
import subprocess
import sys

import pytest
from sonde_test import SONDE, environment, sonde

SECRET = "hunter2-Zx81-do-not-store"


def run_json(directory):
    return json.loads((directory / "run.json").read_text())


def runs(tmp_path):
    return sorted((tmp_path / ".sonde/runs").iterdir())


def mode(path):
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
def test_nobody_else_may_read_a_run(tmp_path, umask):
    tmp_path.chmod(0o755)
    sonde("run", "-q", "true", cwd=tmp_path, preexec_fn=lambda: os.umask(umask))
    sonde("run", "-q", "-o", "placed", "true", cwd=tmp_path, preexec_fn=lambda: os.umask(umask))
    found = [tmp_path / "placed", tmp_path / ".sonde", *(tmp_path / ".sonde").rglob("*")]
    found += (tmp_path / "placed").rglob("*")
    assert len(found) >= 8
    for path in found:
        assert mode(path) == (0o700 if path.is_dir() else 0o600), path


def test_run_json_says_who_what_when(tmp_path):
    sonde("run", "-q", "--name", "first", "--tag", "team=x", "--tag", "team=y", "--param",
          "lr=0.1", "--after", "1s", "--duration", "2m", "sh", "-c", "exit 0", cwd=tmp_path)
    (directory,) = runs(tmp_path)
    answer = run_json(directory)
    assert answer["schema"] == "sonde.run/1"
    assert answer["id"] == directory.name and len(answer["id"]) == 8
    assert answer["name"] == "first"
    assert answer["command"] == ["sh", "-c", "exit 0"]
    assert answer["cwd"] == str(tmp_path)
    assert answer["tags"] == {"team": "y"} and answer["params"] == {"lr": "0.1"}
    assert answer["ended_ns"] > answer["started_ns"] > 1.6e18
    assert answer["exit"] == {"code": 0, "signal": None, "cause": "ok"}
    assert answer["options"]["after_s"] == 1 and answer["options"]["duration_s"] == 120
    assert answer["hardware"]["cores"] == len(os.sched_getaffinity(0))
    assert answer["hardware"]["memory_mb"] > 100
    assert answer["host"] == os.uname().nodename
    assert answer["rusage"]["max_rss_mb"] > 0.1
    assert 0 <= answer["overhead"]["supervisor_cpu_s"] < 5
    # Sanitised builds have no library to preload.
    assert [n for n in answer["notes"] if "libsonde-preload" not in n] == []
    assert set(answer) >= set(
        "started pid supervisor environment level rank world_size parent_run sonde".split()
    )


def test_cpu_time_of_the_program_is_its_own(tmp_path):
    burn = "import time\nwhile time.process_time() < 0.5: pass"
    sonde("run", "-q", "-o", tmp_path / "run", sys.executable, "-c", burn)
    usage = run_json(tmp_path / "run")["rusage"]
    assert 0.45 < usage["cpu_user_s"] + usage["cpu_system_s"] < 2


@pytest.mark.parametrize(
    "command",
    [
        ["true", f"--api-key={SECRET}"],
        ["true", "--password", SECRET],
        ["env", f"HF_TOKEN={SECRET}", "true"],
        ["true", f"https://user:{SECRET}@example.org/x"],
        ["sh", "-c", f": export AWS_SECRET_ACCESS_KEY={SECRET}"],
    ],
)
def test_secrets_never_reach_the_disk(tmp_path, command):
    done = sonde("run", "-o", tmp_path / "run", "--param", f"token={SECRET}", "--tag",
                 f"db_password={SECRET}", *command)
    for path in (tmp_path / "run").rglob("*"):
        assert SECRET.encode() not in path.read_bytes(), path
    assert SECRET not in done.stderr
    assert "[redacted]" in (tmp_path / "run/run.json").read_text()


def test_no_redact_keeps_the_command_as_it_was(tmp_path):
    command = ["true", f"--api-key={SECRET}"]
    sonde("run", "-q", "--no-redact", "-o", tmp_path / "run", *command)
    assert run_json(tmp_path / "run")["command"] == command


def test_the_program_itself_gets_its_secrets(tmp_path):
    done = sonde("run", "-q", "-o", tmp_path / "run", "echo", f"--api-key={SECRET}")
    assert done.stdout == f"--api-key={SECRET}\n"


def test_an_output_directory_that_holds_something_is_refused(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/precious").write_text("x")
    done = sonde("run", "-o", tmp_path / "out", "touch", tmp_path / "ran", check=False)
    assert done.returncode == 125
    assert "not empty" in done.stderr
    assert not (tmp_path / "ran").exists()
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["precious"]


def test_an_empty_output_directory_and_missing_parents_are_fine(tmp_path):
    (tmp_path / "empty").mkdir()
    sonde("run", "-q", "-o", tmp_path / "empty", "true")
    sonde("run", "-q", "-o", tmp_path / "a/b/c/", "true")
    assert run_json(tmp_path / "empty")["exit"]["code"] == 0
    assert run_json(tmp_path / "a/b/c")["exit"]["code"] == 0


def test_sonde_dir_moves_the_store(tmp_path):
    env = environment(SONDE_DIR=tmp_path / "elsewhere")
    sonde("run", "-q", "true", cwd=tmp_path, env=env)
    assert len(list((tmp_path / "elsewhere/runs").iterdir())) == 1
    assert not (tmp_path / ".sonde").exists()


def unprofiled(tmp_path, **more):
    done = sonde("run", "sh", "-c", "echo fine; exit 9", cwd=tmp_path, check=False, **more)
    assert (done.returncode, done.stdout) == (9, "fine\n")
    assert "SONDE_DIR" in done.stderr and "without" in done.stderr
    quiet = sonde("run", "-q", "true", cwd=tmp_path, **more)
    assert quiet.stderr == ""


def test_a_store_that_cannot_be_made_does_not_stop_the_program(tmp_path):
    (tmp_path / ".sonde").write_text("a file is in the way")
    unprofiled(tmp_path)


def test_a_read_only_directory_does_not_stop_the_program(tmp_path):
    def become_nobody():
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)

    for parent in [tmp_path, *tmp_path.parents[:2]]:
        parent.chmod(0o755 if os.getuid() == 0 else 0o555)
    try:
        unprofiled(tmp_path, preexec_fn=become_nobody)
    finally:
        for parent in [tmp_path, *tmp_path.parents[:2]]:
            parent.chmod(0o755)


def test_a_working_directory_that_is_gone_does_not_stop_the_program(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    done = subprocess.run(
        ["sh", "-c", f"cd '{gone}' && rmdir '{gone}' && exec '{SONDE}' run echo fine"],
        capture_output=True, text=True, env=environment(),
    )
    assert (done.returncode, done.stdout) == (0, "fine\n")


def test_disabled_we_become_the_program(tmp_path):
    env = environment(SONDE_DISABLE=1, SONDE_LEVEL="nonsense")
    process = subprocess.run([SONDE, "run", "sh", "-c", "echo $$ $PPID"], cwd=tmp_path,
                             env=env, capture_output=True, text=True)
    assert process.stdout.split()[1] == str(os.getpid())
    assert process.stderr == ""
    assert not (tmp_path / ".sonde").exists()


def test_the_word_for_no_does_not_disable(tmp_path):
    sonde("run", "-q", "true", cwd=tmp_path, env=environment(SONDE_DISABLE="0"))
    assert len(runs(tmp_path)) == 1


def test_a_sonde_inside_joins_the_outer_run(tmp_path):
    script = f"'{SONDE}' run --json sh -c 'echo $SONDE_RUN; exit 3'; echo $?"
    done = sonde("run", "-q", "sh", "-c", script, cwd=tmp_path)
    (directory,) = runs(tmp_path)
    assert done.stdout == f"{directory}\n3\n"
    assert done.stderr == ""


def test_the_program_learns_its_run_and_nothing_else(tmp_path):
    bare = subprocess.run(["env"], cwd=tmp_path, env=environment(), capture_output=True, text=True)
    run = f"SONDE_RUN={tmp_path / 'here'}"
    done = sonde("run", "-q", "-o", "here", "--no-preload", "--no-python", "env", cwd=tmp_path)
    assert set(done.stdout.splitlines()) - set(bare.stdout.splitlines()) == {run}


def test_what_is_preloaded_is_all_there_is_besides(tmp_path):
    done = sonde("run", "-q", "-o", "here", "env", cwd=tmp_path)
    changed = {line.partition("=")[0] for line in done.stdout.splitlines()}
    changed -= set(environment())
    assert changed - {"_", "SONDE_RUN", "LD_PRELOAD", "ASAN_OPTIONS", "PYTHONPATH"} == set()


def git(directory, *arguments):
    subprocess.run(
        ["git", "-c", "user.name=x", "-c", "user.email=x@y", "-c", "init.defaultBranch=main",
         *arguments],
        cwd=directory, check=True, capture_output=True,
        env=environment(HOME=directory, GIT_CONFIG_NOSYSTEM=1),
    )


def head(directory):
    return subprocess.run(["git", "rev-parse", "HEAD"], cwd=directory, capture_output=True,
                          text=True, check=True).stdout.strip()


def git_of_run(directory, name):
    out = directory.parent / f"run-{name}"
    sonde("run", "-q", "-o", out, "true", cwd=directory)
    return run_json(out)["environment"]["git"]


def test_the_commit_is_noted(tmp_path):
    repository = tmp_path / "repository"
    (repository / "deep/down").mkdir(parents=True)
    git(repository, "init")
    assert git_of_run(repository, "empty") == {"commit": None, "branch": "main", "dirty": None}
    git(repository, "commit", "--allow-empty", "-m", "one")
    expected = {"commit": head(repository), "branch": "main", "dirty": None}
    assert git_of_run(repository, "loose") == expected
    sonde("run", "-q", "-o", tmp_path / "run-deep", "true", cwd=repository / "deep/down")
    assert run_json(tmp_path / "run-deep")["environment"]["git"] == expected
    git(repository, "pack-refs", "--all")
    assert git_of_run(repository, "packed") == expected
    git(repository, "worktree", "add", "-b", "feature/x", tmp_path / "tree")
    assert git_of_run(tmp_path / "tree", "tree") == {**expected, "branch": "feature/x"}
    git(repository, "checkout", "--detach")
    assert git_of_run(repository, "detached") == {**expected, "branch": None}


def test_outside_of_git_there_is_no_commit(tmp_path):
    assert git_of_run(tmp_path, f"{tmp_path.name}") is None
