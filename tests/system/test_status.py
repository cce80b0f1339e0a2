# labels: no_asan
# waits: yes
"""The line that tells how a run goes: seen on a terminal, gone at the end, and the
program's own output just where it would be without."""

import fcntl
import os
import re
import signal
import struct
import termios
import time

import pyte
import pytest
from sonde_test import BUILD, SONDE, environment, sonde
from terminal import Terminal

ROWS, COLUMNS = 12, 120

CHATTER = """
import sys, time
print("first line")
sys.stdout.write("a line in pieces:")
for i in range(8):
    sys.stdout.write(f" {i}"); sys.stdout.flush(); time.sleep(0.25)
print(" done")
for i in range(30):
    print(f"line {i}"); time.sleep(0.01)
sys.stderr.write("progress 10 %"); sys.stderr.flush(); time.sleep(0.5)
sys.stderr.write("\\rprogress 100 %\\n")
print("last line")
"""

STEPS = """
import sonde, time
sonde.param("steps", 4000)
for i in range(10**9):
    with sonde.zone("read", phase="data_loading"): time.sleep(0.02)
    with sonde.zone("compute", phase="forward"): time.sleep(0.005)
    sonde.step()
"""


class Screen:
    """What a person would see: Sonde's bytes through a terminal emulator."""

    def __init__(self, tmp_path, *command, **variables):
        env = environment(TERM="xterm", LC_ALL="C.UTF-8", NO_COLOR="1", **variables)
        self.terminal = Terminal([SONDE, "run", *map(str, command)], tmp_path, env)
        size = struct.pack("HHHH", ROWS, COLUMNS, 0, 0)
        fcntl.ioctl(self.terminal.fd, termios.TIOCSWINSZ, size)
        self.screen = pyte.Screen(COLUMNS, ROWS)
        self.stream = pyte.Stream(self.screen)
        self.fed = 0

    def show(self):
        self.stream.feed(self.terminal.text[self.fed :])
        self.fed = len(self.terminal.text)
        return [line.rstrip() for line in self.screen.display]

    def wait_for_status(self, pattern, seconds=30):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.terminal.listen(0.1)
            if re.search(pattern, self.show()[-1]):
                return self.show()[-1]
        raise AssertionError(f"no {pattern!r} at the bottom of {self.show()}")

    def end(self):
        status = self.terminal.wait()
        return os.waitstatus_to_exitcode(status), self.show()


@pytest.fixture
def script(tmp_path):
    file = tmp_path / "script.py"

    def write(text):
        file.write_text(text)
        return "/usr/bin/python3", file

    return write


def test_the_program_prints_where_it_would_without(tmp_path, script):
    ends = []
    for options in ([], ["--no-status"]):
        screen = Screen(tmp_path, "--no-report", *options, *script(CHATTER))
        if not options:
            assert "RSS" in screen.wait_for_status(r"^sonde \d")
        ends.append(screen.end())
        screen.terminal.__exit__()
    # The row is given back empty: the same text, one row higher at most.
    (code, with_line), (code_without, without) = ends
    with_line, without = ("\n".join(lines).rstrip().split("\n") for lines in (with_line, without))
    rows = min(len(with_line), len(without))
    assert rows >= ROWS - 3 and with_line[-rows:] == without[-rows:]
    assert code == code_without == 0
    assert not any("RSS" in line for line in ends[0][1])


def test_it_tells_steps_rate_phases_memory_and_what_is_left(tmp_path, script):
    screen = Screen(tmp_path, "--no-report", *script(STEPS), PYTHONPATH=BUILD / "python")
    # Of all the time so far: at first most of it went into the start of the interpreter.
    large = r"([4-9]\d) %"
    screen.wait_for_status(
        rf"step [\d,]+ of 4,000 .* steps/s .* left .*RSS .*data_loading {large}", 100
    )
    os.kill(screen.terminal.pid, signal.SIGTERM)
    _, lines = screen.end()
    assert not any("steps/s" in x for x in lines)
    text = screen.terminal.text
    assert text.rindex("\x1b[r") > max(m.start() for m in re.finditer(r"\x1b\[\d+;\d+r", text))


def test_nothing_on_a_pipe_on_a_dumb_terminal_or_when_asked(tmp_path, script):
    command = script("import time; time.sleep(2)")
    piped = sonde("run", "--no-report", "--", *command, cwd=tmp_path)
    assert piped.stderr == "" and piped.stdout == ""
    for options, variables in ((["-q"], {}), (["--no-report"], {"SONDE_NO_STATUS": "1"})):
        screen = Screen(tmp_path, *options, *command, **variables)
        screen.end()
        assert screen.terminal.text == ""
        screen.terminal.__exit__()


def test_a_program_that_paints_its_own_screen_is_left_alone(tmp_path):
    """The first line comes after a second: stty is faster than an interpreter."""
    screen = Screen(tmp_path, "--no-report", "sh", "-c", "stty raw; sleep 2.5; echo end")
    screen.end()
    assert "\x1b7" not in screen.terminal.text
