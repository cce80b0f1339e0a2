# timeout: 120
"""Long verbs tell how far they are, on a terminal alone; an interrupted one leaves nothing
behind that looks like an answer."""

import json
import os
import pty
import signal
import subprocess
import time

import pytest
from sonde_test import SONDE, environment, sonde

ZONES = 200_000


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A trace in Chrome's form that takes a while."""
    file = tmp_path_factory.mktemp("large") / "large.json"
    with file.open("w") as out:
        out.write("[")
        for i in range(ZONES):
            zone = {"ph": "X", "name": f"z{i % 50}", "pid": 7, "tid": 7, "ts": i * 10, "dur": 9}
            out.write(("," if i else "") + json.dumps(zone))
        out.write("]")
    return file


def read_all(master):
    seen = b""
    try:
        while part := os.read(master, 4096):
            seen += part
    except OSError:  # the other side is closed
        pass
    return seen


def test_a_line_on_a_terminal_once_it_takes_a_second(large, tmp_path):
    """Halted for longer than a second in the middle, it has a line to show when it goes on."""
    place = tmp_path / "run"
    master, slave = pty.openpty()
    going = subprocess.Popen([SONDE, "import", "-o", place, large], stderr=slave,
                             stdout=subprocess.DEVNULL, env=environment(TERM="xterm"))
    os.close(slave)
    while not place.exists() and going.poll() is None:
        pass
    going.send_signal(signal.SIGSTOP)
    time.sleep(1.3)
    going.send_signal(signal.SIGCONT)
    seen = read_all(master)
    assert going.wait(60) == 0
    assert b"reading" in seen and seen.endswith(b"\r\x1b[K")
    os.close(master)


def test_a_pipe_gets_no_line(large, tmp_path):
    assert sonde("import", "-o", tmp_path / "run", large).stderr == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["int", "term"])
def test_an_interrupted_export_leaves_no_file(large, tmp_path, number):
    place = tmp_path / "run"
    sonde("import", "-q", "-o", place, large)
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "trace.json").write_text("the one before\n")
    going = subprocess.Popen([SONDE, "export", place, "-q", "-o", folder / "trace.json"],
                             env=environment())
    end = time.monotonic() + 60
    while len(list(folder.iterdir())) < 2 and going.poll() is None and time.monotonic() < end:
        pass
    going.send_signal(number)
    status = going.wait(60)
    assert [p.name for p in folder.iterdir()] == ["trace.json"]
    if status != 0:  # it was caught at it
        assert status == -number
        assert (folder / "trace.json").read_text() == "the one before\n"
