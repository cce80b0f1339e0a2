"""`sonde run` at a terminal: Ctrl-C, Ctrl-Z, fg, bg, as if Sonde were not there."""

import contextlib
import fcntl
import json
import os
import re
import signal
import struct
import subprocess
import sys
import termios
import time

import pytest
from sonde_test import SONDE, environment, program
from terminal import Terminal

CTRL_C, CTRL_BACKSLASH, CTRL_Z = "\x03", "\x1c", "\x1a"


def seen(terminal, number):
    """How often; the terminal's echo ("^C") may stand before the line."""
    return len(re.findall(rf"signal {int(number)}\r", terminal.text))


def run_at(tmp_path, *command, **variables):
    return Terminal([SONDE, "run", *command], tmp_path, environment(TERM="dumb", **variables))


@pytest.fixture
def shell(tmp_path):
    env = environment(TERM="dumb", PS1="$ ", PATH=f"{SONDE.parent}:{os.environ['PATH']}")
    with Terminal(["bash", "--norc", "--noprofile", "-i"], tmp_path, env) as terminal:
        terminal.expect(r"\$ $")
        yield terminal


@pytest.mark.parametrize(
    "key, number", [(CTRL_C, signal.SIGINT), (CTRL_BACKSLASH, signal.SIGQUIT)]
)
def test_a_key_reaches_the_program_once_and_we_stay(tmp_path, key, number):
    with run_at(tmp_path, "-q", program("signal_log"), "12") as terminal:
        terminal.expect(r"^ready")
        terminal.type(key)
        terminal.expect(rf"signal {int(number)}\r")
        terminal.listen(0.2)
        assert seen(terminal, number) == 1
        os.kill(terminal.pid, signal.SIGUSR2)
        assert os.waitstatus_to_exitcode(terminal.wait()) == 12


def test_a_program_killed_by_ctrl_c_is_reported_and_the_shell_sees_130(tmp_path):
    with run_at(tmp_path, "sleep", "60") as terminal:
        wait_for_child(terminal.pid)
        terminal.type(CTRL_C)
        status = terminal.wait()
        assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGINT
        assert "sonde" in terminal.text, terminal.text  # the report


def wait_for_child(pid, seconds=60):
    """Until the program itself runs: its name is no longer ours."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with open(f"/proc/{pid}/task/{pid}/children") as children:
            for child in children.read().split():
                with open(f"/proc/{child}/comm") as name:
                    if name.read().strip() not in ("sonde", "sonde-witness"):
                        return int(child)
        time.sleep(0.01)
    raise AssertionError("no child")


def test_ctrl_c_stops_a_loop_in_the_shell(shell):
    shell.type("for i in 1 2 3; do sonde run -q sleep 30; done; echo status=$?\n")
    time.sleep(0.5)
    shell.type(CTRL_C)
    shell.expect(r"status=130|\$ $", after=len(shell.text))


def test_a_program_that_handles_ctrl_c_keeps_its_status(tmp_path):
    script = "trap 'exit 3' INT; echo ready; while :; do sleep 0.05; done"
    with run_at(tmp_path, "-q", "sh", "-c", script) as terminal:
        terminal.expect("^ready")
        terminal.type(CTRL_C)
        assert os.waitstatus_to_exitcode(terminal.wait()) == 3


def test_the_window_size_is_told_once(tmp_path):
    with run_at(tmp_path, "-q", program("signal_log")) as terminal:
        terminal.expect("^ready")
        fcntl.ioctl(terminal.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 90, 0, 0))
        terminal.expect(rf"signal {int(signal.SIGWINCH)}")
        terminal.listen(0.2)
        assert seen(terminal, signal.SIGWINCH) == 1
        os.kill(terminal.pid, signal.SIGUSR2)
        assert terminal.wait() == 0


def test_ctrl_z_and_fg(shell):
    shell.type(f"sonde run -q {program('signal_log')} 21\n")
    shell.expect("^ready")
    shell.type(CTRL_Z)
    shell.expect("Stopped")
    at = len(shell.text)
    shell.type("jobs; fg\n")
    shell.expect(rf"signal {int(signal.SIGCONT)}", after=at)
    shell.listen(0.2)
    assert seen(shell, signal.SIGCONT) == 1
    shell.type(CTRL_C)
    shell.expect(rf"signal {int(signal.SIGINT)}", after=at)
    assert seen(shell, signal.SIGINT) == 1
    pid = int(shell.expect(r"ready (\d+)").group(1))
    os.kill(pid, signal.SIGUSR2)
    shell.expect(rf"signal {int(signal.SIGUSR2)}\r", after=at)
    shell.type("echo status=$?\n")
    shell.expect("status=21", after=at)


def test_ctrl_z_and_bg(shell):
    shell.type("sonde run -q sh -c 'echo be\"\"gun; sleep 1; echo d\"\"one; exit 5'\n")
    shell.expect("begun")
    # A child of vfork() that stops before it has become `sleep` keeps its parent from stopping,
    # with and without us; the preload library makes that moment longer.
    time.sleep(0.2)
    shell.type(CTRL_Z)
    shell.expect("Stopped")
    shell.type("bg\n")
    shell.expect("done")
    shell.type("wait %1; echo status=$?\n")
    shell.expect("status=5")


def test_a_program_in_the_background_that_reads_stops_and_so_do_we(shell):
    shell.type("sonde run -q cat &\n")
    for _ in range(100):
        shell.type("jobs\n")
        if "Stopped" in shell.listen(0.4):
            break
    assert "Stopped" in shell.text
    at = len(shell.text)
    shell.type("fg\n")
    time.sleep(0.2)
    shell.type("hello\n\x04")
    shell.expect("hello\r?\nhello", after=at)
    shell.type("echo status=$?\n")
    shell.expect("status=0", after=at)


def test_a_program_that_stops_itself_gives_the_shell_back(shell):
    shell.type("sonde run -q sh -c 'kill -STOP $$; exit 4'\n")
    shell.expect("Stopped")
    shell.type("fg; echo status=$?\n")
    shell.expect("status=4")


def test_an_interrupt_leaves_the_report_and_keeps_the_status(tmp_path):
    read, write = os.pipe()
    os.set_blocking(write, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(write, b"x" * 4096)
    os.set_blocking(write, True)  # full: the report cannot be written
    process = subprocess.Popen([SONDE, "run", "-o", tmp_path / "run", "sh", "-c", "exit 7"],
                               env=environment(), stderr=write)
    wait_for_end(tmp_path / "run")
    time.sleep(0.3)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 7
    os.close(read)
    os.close(write)


def wait_for_end(run, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(FileNotFoundError):
            if json.loads((run / "run.json").read_text())["ended_ns"]:
                return
        time.sleep(0.02)
    raise AssertionError("the run does not end")


def test_a_terminal_that_hangs_up_ends_the_program(tmp_path):
    with run_at(tmp_path, "-q", "-o", tmp_path / "run", "sleep", "60") as terminal:
        child = wait_for_child(terminal.pid)
        terminal.hang_up()
        status = terminal.wait()
        assert os.WTERMSIG(status) == signal.SIGHUP
        assert not os.path.exists(f"/proc/{child}")


def test_full_screen_programs_get_the_terminal(tmp_path):
    script = "import sys; print([sys.stdin.isatty(), sys.stdout.isatty(), sys.stderr.isatty()])"
    with run_at(tmp_path, "-q", sys.executable, "-c", script) as terminal:
        terminal.expect(r"\[True, True, True\]")
        assert terminal.wait() == 0
