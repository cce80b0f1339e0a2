# waits: yes
"""Signals reach the program exactly as they would without Sonde in between."""

import os
import resource
import signal
import subprocess
import sys
import time

import pytest
from sonde_test import SONDE, environment, program, sonde


class Watched:
    """signal_log under `sonde run`; its lines come as the signals do."""

    def __init__(self, tmp_path, *arguments, options=(), **more):
        self.process = subprocess.Popen(
            [SONDE, "run", "-q", "-o", tmp_path / "run", *options, program("signal_log"),
             *arguments],
            stdout=subprocess.PIPE, env=environment(), text=True, **more,
        )
        self.child = int(self.line().split()[1])

    def line(self):
        return self.process.stdout.readline().strip()

    def send(self, number):
        self.process.send_signal(number)

    def finish(self):
        """The rest of the lines, and how `sonde run` ended."""
        self.send(signal.SIGUSR2)
        rest = self.process.stdout.read().split("\n")
        return [line for line in rest if line], self.process.wait(60)


FORWARDED = "HUP INT QUIT USR1 TERM CONT WINCH ALRM".split()


@pytest.mark.parametrize("name", FORWARDED)
def test_a_signal_sent_to_us_alone_reaches_the_program_once(tmp_path, name):
    number = signal.Signals[f"SIG{name}"]
    watched = Watched(tmp_path, "11")
    watched.send(number)
    assert watched.line() == f"signal {int(number)}"
    time.sleep(0.05)
    assert watched.finish() == ([f"signal {int(signal.SIGUSR2)}"], 11)


@pytest.mark.parametrize("name", "HUP INT TERM USR1".split())
@pytest.mark.parametrize("how", ["the group", "each of it"])
def test_a_signal_sent_to_the_whole_group_reaches_the_program_once(tmp_path, name, how):
    """As batch systems, service managers and os.killpg() send it; then one to us alone."""
    number = signal.Signals[f"SIG{name}"]
    watched = Watched(tmp_path, "11", start_new_session=True)
    for _ in range(3):
        if how == "the group":
            os.killpg(watched.process.pid, number)
        else:
            for pid in group_of(watched.process.pid):
                os.kill(pid, number)
        assert watched.line() == f"signal {int(number)}"
        time.sleep(0.05)
    watched.send(number)
    assert watched.line() == f"signal {int(number)}"
    assert watched.finish() == ([f"signal {int(signal.SIGUSR2)}"], 11)


def group_of(leader):
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    found = []
    for pid in pids:
        try:
            if os.getpgid(pid) == leader:
                found.append(pid)
        except ProcessLookupError:
            pass
    return found


def test_nobody_stays_behind_to_watch_for_signals(tmp_path):
    watched = Watched(tmp_path, start_new_session=True)
    assert len(group_of(watched.process.pid)) == 3
    watched.process.kill()
    os.kill(watched.child, signal.SIGKILL)
    watched.process.wait()
    end = time.monotonic() + 30
    while any(is_alive(pid) for pid in group_of(watched.process.pid)):
        assert time.monotonic() < end
        time.sleep(0.02)


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_queued_signal_keeps_its_value(tmp_path):
    watched = Watched(tmp_path)
    number = signal.SIGRTMIN + 1
    script = f"""
import ctypes
class Value(ctypes.Union):
    _fields_ = [("number", ctypes.c_int), ("pointer", ctypes.c_void_p)]
ctypes.CDLL(None).sigqueue({watched.process.pid}, {number}, Value(number=1234))
"""
    subprocess.run([sys.executable, "-c", script], check=True)
    assert watched.line() == f"signal {number}"
    assert watched.line() == "value 1234"
    assert watched.finish()[1] == 0


def test_a_signal_to_the_program_itself_is_its_own_affair(tmp_path):
    watched = Watched(tmp_path)
    os.kill(watched.child, signal.SIGTERM)
    assert watched.line() == f"signal {int(signal.SIGTERM)}"
    assert watched.finish() == ([f"signal {int(signal.SIGUSR2)}"], 0)


def test_a_program_that_signals_its_group_does_not_get_it_back(tmp_path):
    script = (
        "import os,signal,time\n"
        "got = []\n"
        "signal.signal(signal.SIGTERM, lambda *_: got.append(1))\n"
        "for _ in range(20):\n"
        "    os.kill(0, signal.SIGTERM)\n"
        "    time.sleep(0.02)\n"
        "print(len(got))\n"
    )
    done = sonde("run", "-q", "-o", tmp_path / "run", sys.executable, "-c", script,
                 start_new_session=True)
    assert done.stdout == "20\n"


def test_an_alarm_set_before_we_were_started_rings_in_the_program(tmp_path):
    def set_alarm():
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, 0.3)

    done = sonde("run", "-q", "-o", tmp_path / "run", "sleep", "20", check=False,
                 preexec_fn=set_alarm)
    assert done.returncode == -signal.SIGALRM


def inherited(*prefix, cwd, **more):
    # AddressSanitizer would take SIGBUS for itself before we can see it ignored.
    env = environment(ASAN_OPTIONS="handle_sigbus=0")
    done = subprocess.run([*prefix, program("inherited")], cwd=cwd, env=env,
                          capture_output=True, text=True, check=True, **more)
    return done.stdout


def ignore_some():
    for s in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGCHLD, signal.SIGTSTP,
              signal.SIGXFSZ, signal.SIGBUS):
        signal.signal(s, signal.SIG_IGN)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def block_some():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGCHLD, signal.SIGTERM})


def change_the_rest():
    os.umask(0o27)
    os.nice(3)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


@pytest.mark.parametrize("change", [None, ignore_some, block_some, change_the_rest])
def test_the_program_inherits_what_we_inherited(tmp_path, change):
    bare = inherited(cwd=tmp_path, preexec_fn=change)
    ours = inherited(SONDE, "run", "-q", cwd=tmp_path, preexec_fn=change)
    assert ours == bare


def test_descriptors_of_the_caller_reach_the_program_and_none_of_ours(tmp_path):
    read, write = os.pipe()
    bare = inherited(cwd=tmp_path, pass_fds=(read,))
    ours = inherited(SONDE, "run", "-q", cwd=tmp_path, pass_fds=(read,))
    os.close(read)
    os.close(write)
    assert f"descriptor {read}" in bare
    assert ours == bare


def test_an_ignored_interrupt_stays_ignored(tmp_path):
    """What `nohup` and `&` in a script do."""
    process = subprocess.Popen(
        [SONDE, "run", "-q", "-o", tmp_path / "run", "sh", "-c", "sleep 0.6; exit 8"],
        env=environment(), start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(60) == 8


def state(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rsplit(")", 1)[1].split()[0]


def becomes(pid, letter, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if state(pid) == letter:
            return True
        time.sleep(0.01)
    return False


def test_a_batch_system_may_suspend_the_program_alone(tmp_path):
    watched = Watched(tmp_path, start_new_session=True)
    os.kill(watched.child, signal.SIGSTOP)
    assert becomes(watched.child, "T")
    time.sleep(0.1)
    assert becomes(watched.process.pid, "S")  # stopped, nobody would wake us again
    watched.send(signal.SIGCONT)
    assert watched.line() == f"signal {int(signal.SIGCONT)}"
    assert watched.finish()[1] == 0


def test_we_may_be_stopped_and_continued_alone(tmp_path):
    watched = Watched(tmp_path)
    watched.send(signal.SIGSTOP)
    assert becomes(watched.process.pid, "T")
    os.kill(watched.child, signal.SIGTERM)
    assert watched.line() == f"signal {int(signal.SIGTERM)}"
    watched.send(signal.SIGCONT)
    assert watched.line() == f"signal {int(signal.SIGCONT)}"
    assert watched.finish()[1] == 0


@pytest.mark.parametrize(
    "options, most",
    [(["--no-monitors", "--rate", "0", "--no-hang"], 40), ([], 70)],
    ids=["draining only", "all captures"],
)
def test_we_sleep_while_the_program_idles(tmp_path, options, most):
    """Counted in wake-ups: what one costs depends on who else uses the machine."""
    watched = Watched(tmp_path, options=options)
    time.sleep(0.5)
    before, began = wakes(watched.process.pid), time.monotonic()
    time.sleep(3)
    woken = wakes(watched.process.pid) - before
    per_second = woken / (time.monotonic() - began)
    assert watched.finish()[1] == 0
    assert 0 < per_second < most


def wakes(pid):
    """How often the process went to sleep of its own will."""
    with open(f"/proc/{pid}/status") as text:
        return next(
            int(line.split()[1]) for line in text if line.startswith("voluntary_ctxt")
        )
