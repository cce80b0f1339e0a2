"""`sonde run` ends as its program ends, and starts it or says why not."""

import json
import os
import resource
import signal
import subprocess
import sys
import time

import pytest
from sonde_test import SONDE, environment, sonde

HARMLESS = "STOP TSTP TTIN TTOU CHLD CLD CONT URG WINCH RTMIN RTMAX"
FATAL = [s for s in signal.Signals if s.name[3:] not in HARMLESS.split()]


def run_json(directory):
    return json.loads((directory / "run.json").read_text())


def only_run(tmp_path):
    runs = list((tmp_path / ".sonde/runs").iterdir())
    assert len(runs) == 1
    return runs[0]


def no_core():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def test_every_exit_code_is_passed_on(tmp_path):
    for code in range(256):
        done = sonde("run", "-q", "sh", "-c", f"exit {code}", cwd=tmp_path, check=False)
        assert done.returncode == code
        assert done.stderr == ""


@pytest.mark.parametrize("number", FATAL, ids=lambda s: s.name)
def test_a_fatal_signal_is_raised_again(tmp_path, number):
    done = sonde(
        "run", "-q", "-o", tmp_path / "run", "--", "sh", "-c", f"kill -{int(number)} $$",
        check=False, preexec_fn=no_core,
    )
    assert done.returncode == -number
    end = run_json(tmp_path / "run")["exit"]
    assert end == {"code": None, "signal": number.name, "cause": "signal"}


def test_a_real_time_signal_is_raised_again(tmp_path):
    number = signal.SIGRTMIN + 3
    done = sonde(
        "run", "-q", "-o", tmp_path / "run", "sh", "-c", f"kill -{number} $$", check=False
    )
    assert done.returncode == -number
    assert run_json(tmp_path / "run")["exit"]["signal"] == "SIGRTMIN+3"


def test_the_shell_sees_128_and_the_signal(tmp_path):
    done = subprocess.run(
        ["sh", "-c", f"'{SONDE}' run -q sh -c 'kill -KILL $$'; echo $?"],
        cwd=tmp_path, env=environment(), capture_output=True, text=True,
    )
    assert done.stdout == "137\n"


def test_our_death_by_signal_leaves_no_second_core_file(tmp_path):
    def cores_wanted():
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2)

    try:
        done = subprocess.Popen(
            [SONDE, "run", "-q", "sh", "-c", "ulimit -c 0; kill -SEGV $$"],
            cwd=tmp_path, env=environment(), preexec_fn=cores_wanted,
        )
    except (ValueError, subprocess.SubprocessError):
        pytest.skip("the core limit cannot be raised here")
    _, status = os.waitpid(done.pid, 0)
    assert os.WTERMSIG(status) == signal.SIGSEGV
    assert not os.WCOREDUMP(status)


def test_a_missing_program_is_127_and_leaves_no_run(tmp_path):
    done = sonde("run", "no-such-program-anywhere", cwd=tmp_path, check=False)
    assert done.returncode == 127
    assert "no-such-program-anywhere" in done.stderr and "not found" in done.stderr
    assert not list((tmp_path / ".sonde/runs").iterdir())


def test_a_program_that_may_not_be_executed_is_126(tmp_path):
    (tmp_path / "data").write_text("no program")
    for target in ("./data", "/"):
        done = sonde("run", target, cwd=tmp_path, check=False)
        assert done.returncode == 126
        assert "permission denied" in done.stderr.lower()
    assert not list((tmp_path / ".sonde/runs").iterdir())


def test_an_output_directory_that_was_there_stays_when_nothing_starts(tmp_path):
    (tmp_path / "out").mkdir()
    assert sonde("run", "-o", tmp_path / "out", "nope", check=False).returncode == 127
    assert list((tmp_path / "out").iterdir()) == []
    assert sonde("run", "-o", tmp_path / "new", "nope", check=False).returncode == 127
    assert not (tmp_path / "new").exists()


def test_a_script_without_interpreter_line_runs_as_from_a_shell(tmp_path):
    script = tmp_path / "script"
    script.write_text("exit 9\n")
    script.chmod(0o755)
    assert sonde("run", "-q", script, cwd=tmp_path, check=False).returncode == 9


@pytest.mark.parametrize(
    "arguments, word",
    [
        ([], "no command"),
        (["--max-trace", "big", "true"], "--max-trace wants a size such as 512MiB, got 'big'"),
        (["--levle", "basic", "true"], "did you mean --level?"),
        (["--level", "deep", "true"], "one of basic, detailed, comprehensive"),
        (["--after", "soon", "true"], "--after wants a duration"),
        (["--steps", "5:5", "true"], "--steps wants a range"),
        (["--tag", "novalue", "true"], "--tag wants key=value"),
        (["--name", "--", "true"], "--name wants a value"),
        (["--name", "@last", "true"], "--name"),
        (["-z", "true"], "there is no option -z"),
    ],
)
def test_wrong_usage_is_125_and_says_what_to_do(tmp_path, arguments, word):
    done = sonde("run", *arguments, cwd=tmp_path, check=False)
    assert done.returncode == 125
    assert word in done.stderr
    assert not (tmp_path / ".sonde").exists()


def test_a_bad_variable_is_named_unless_a_flag_overrides_it(tmp_path):
    env = environment(SONDE_LEVEL="deep")
    done = sonde("run", "true", cwd=tmp_path, env=env, check=False)
    assert done.returncode == 125
    assert "SONDE_LEVEL wants one of basic" in done.stderr
    sonde("run", "-q", "--level", "basic", "true", cwd=tmp_path, env=env)
    assert run_json(only_run(tmp_path))["level"] == "basic"


def test_variables_stand_for_options(tmp_path):
    env = environment(SONDE_LEVEL="comprehensive", SONDE_NAME="night", SONDE_QUIET="1",
                      SONDE_MAX_TRACE="64MiB")
    done = sonde("run", "true", cwd=tmp_path, env=env)
    assert done.stderr == ""
    answer = run_json(only_run(tmp_path))
    assert (answer["level"], answer["name"]) == ("comprehensive", "night")
    assert answer["options"]["max_trace"] == 64 << 20


def test_a_timeout_ends_the_program(tmp_path):
    start = time.monotonic()
    done = sonde("run", "-q", "--timeout", "300ms", "-o", tmp_path / "run", "sleep", "60",
                 check=False)
    assert done.returncode == -signal.SIGTERM
    assert 0.25 < time.monotonic() - start < 50  # it would sleep for 60
    answer = run_json(tmp_path / "run")
    assert answer["exit"] == {"code": None, "signal": "SIGTERM", "cause": "timeout"}
    assert any("timeout" in note for note in answer["notes"])


def test_a_program_that_obeys_a_timeout_keeps_its_status(tmp_path):
    for patience in ("0.3", "3", "20"):  # a busy shell may not come to its trap before
        directory = tmp_path / patience
        done = sonde("run", "-q", "--timeout", patience, "-o", directory, "sh", "-c",
                     "trap 'exit 4' TERM; while :; do sleep 0.05; done", check=False)
        assert run_json(directory)["exit"]["cause"] == "timeout"
        if done.returncode != -signal.SIGTERM:
            break
    assert done.returncode == 4


def test_input_and_output_pass_untouched(tmp_path):
    data = bytes(range(256)) * 4096
    command = [sys.executable, "-c",
               "import shutil,sys; shutil.copyfileobj(sys.stdin.buffer, sys.stdout.buffer)"]
    done = subprocess.run([SONDE, "run", "--", *command], input=data, cwd=tmp_path,
                          env=environment(), capture_output=True)
    assert done.returncode == 0
    assert done.stdout == data
    assert done.stderr  # the report, and it went there


def test_quiet_says_nothing(tmp_path):
    done = sonde("run", "--quiet", "sh", "-c", "echo out; echo err >&2", cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("out\n", "err\n")


@pytest.mark.parametrize("close", [[2], [1], [0], [0, 1, 2]])
def test_closed_descriptors_stay_closed_and_do_no_harm(tmp_path, close):
    def shut():
        for fd in close:
            os.close(fd)

    script = 'for f in 0 1 2; do [ -e /proc/$$/fd/$f ] && printf "%s " $f; done > "$0"; exit 5'
    pid = os.fork()
    if pid == 0:
        os.chdir(tmp_path)
        shut()
        os.execve(SONDE, ["sonde", "run", "-o", "run", "sh", "-c", script, "open"], environment())
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 5
    # The shell's own output file may take the place of a closed stdout.
    seen = {int(f) for f in (tmp_path / "open").read_text().split()} - {1}
    assert seen == {0, 2} - set(close)
    assert run_json(tmp_path / "run")["exit"]["code"] == 5


def test_a_reader_of_our_messages_that_goes_away_does_not_change_the_status(tmp_path):
    read, write = os.pipe()
    program = subprocess.Popen([SONDE, "run", "sh", "-c", "exit 6"], cwd=tmp_path,
                               env=environment(), stderr=write)
    os.close(write)
    os.close(read)
    assert program.wait(60) == 6


def test_few_descriptors_do_not_break_the_run(tmp_path):
    for limit in (4, 5, 6, 8, 12):
        def few(limit=limit):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))

        done = sonde("run", "sh", "-c", "echo fine; exit 3", cwd=tmp_path, check=False,
                     preexec_fn=few)
        assert (done.returncode, done.stdout) == (3, "fine\n"), limit


def test_no_second_process_no_profile_but_the_program_runs(tmp_path):
    if os.getuid() == 0:
        tmp_path.chmod(0o777)
        for parent in tmp_path.parents[:2]:
            parent.chmod(0o755)

    def alone():
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))

    done = sonde("run", "/bin/echo", "fine", cwd=tmp_path, check=False, preexec_fn=alone)
    assert (done.returncode, done.stdout) == (0, "fine\n")
    assert "without" in done.stderr
