"""Long verbs tell how far they are, on a terminal alone; an interrupted one leaves nothing
behind that looks like an answer."""

import contextlib
import fcntl
import json
import os
import pty
import select
import signal
import sqlite3
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


def shown_by_import(file, place):
    """Halted for longer than a second once it has begun; what the terminal got."""
    master, slave = pty.openpty()
    going = subprocess.Popen([SONDE, "import", "-o", place, file], stderr=slave,
                             stdout=subprocess.DEVNULL, env=environment(TERM="xterm"))
    os.close(slave)
    while not place.exists() and going.poll() is None:
        pass
    going.send_signal(signal.SIGSTOP)
    time.sleep(1.3)
    going.send_signal(signal.SIGCONT)
    seen = read_all(master)
    assert going.wait(120) == 0
    os.close(master)
    return seen


def test_a_line_on_a_terminal_once_it_takes_a_second(large, tmp_path):
    """On a busy machine it may be through before we come to halt it: then once more."""
    for attempt in range(8):
        if seen := shown_by_import(large, tmp_path / f"run{attempt}"):
            break
    assert b"reading" in seen and seen.endswith(b"\r\x1b[K")


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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["int", "term"])
@pytest.mark.parametrize("place", ["store", "new", "empty"])
def test_an_interrupted_import_leaves_no_run(large, tmp_path, number, place):
    store, out = tmp_path / ".sonde", tmp_path / "run"
    folder = store / "runs" if place == "store" else out
    if place == "empty":
        out.mkdir()
    words = [SONDE, "import", "-q", *([] if place == "store" else ["-o", out]), large]
    going = subprocess.Popen(words, env=environment(SONDE_DIR=store), stdout=subprocess.DEVNULL)
    end = time.monotonic() + 60

    def begun():
        if place == "empty":  # nothing tells that it began but its descriptor of the file
            return going.poll() is None and any_open(going.pid, large)
        return folder.exists() and (place == "new" or any(folder.iterdir()))

    while not begun() and going.poll() is None and time.monotonic() < end:
        pass
    going.send_signal(number)
    status = going.wait(60)
    left = sorted(p.name for p in folder.iterdir()) if folder.exists() else []
    if status == -number:  # it was caught at it
        assert left == []
        assert out.exists() == (place == "empty")  # what was there before stays
    else:
        assert status == 0 and left
    # The next one is not in the way of what that left.
    if place != "store" and status != 0:
        sonde("import", "-q", "-o", out, large, env=environment(SONDE_DIR=store))
        assert (out / "run.json").exists()


def any_open(pid, file):
    try:
        links = [os.readlink(f"/proc/{pid}/fd/{n}") for n in os.listdir(f"/proc/{pid}/fd")]
    except OSError:
        return False
    return str(file) in links


def lines_while(held, words, env, said):
    """Runs a verb that waits for what `held` has; its line is seen, and goes when it may go on."""
    master, slave = pty.openpty()
    with held:
        going = subprocess.Popen([SONDE, *words], stderr=slave, stdout=slave, env=env)
        os.close(slave)
        seen, end = b"", time.monotonic() + 60
        while said not in seen and time.monotonic() < end and going.poll() is None:
            if select.select([master], [], [], 0.1)[0]:
                seen += os.read(master, 4096)
        assert said in seen, seen
    seen += read_all(master)
    assert going.wait(60) == 0
    os.close(master)
    assert b"\r\x1b[K" in seen.rpartition(said)[2]  # it was taken away
    return seen


@contextlib.contextmanager
def file_lock(path):
    with open(path, "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def test_a_search_that_takes_long_shows_a_line(tmp_path):
    env = environment(SONDE_DIR=tmp_path / ".sonde", TERM="xterm")
    sonde("log", "--metric", "loss=7", env=env)
    (tmp_path / ".sonde" / "index").mkdir(mode=0o700, exist_ok=True)
    held = file_lock(tmp_path / ".sonde" / "index" / "lock")
    seen = lines_while(held, ["search", "--where", "metrics.loss > 5"], env, b"reading the store")
    assert b"loss" in seen or b"1 " in seen.rpartition(b"\x1b[K")[2]


@contextlib.contextmanager
def database_lock(path):
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        yield
        db.execute("ROLLBACK")


def test_a_collection_that_takes_long_shows_a_line_beside_what_it_removed(tmp_path):
    env = environment(SONDE_DIR=tmp_path / ".sonde", TERM="xterm")
    for _ in range(3):
        sonde("run", "-q", "--", "true", env=env)
    sonde("search", env=env)
    held = database_lock(tmp_path / ".sonde" / "sonde.db")
    seen = lines_while(held, ["store", "gc", "--runs", "1"], env, b"collecting old runs")
    lines = seen.replace(b"\r\n", b"\n").split(b"\n")
    removed = [line for line in lines if b"removed " in line and b"never touched" not in line]
    # Each begins a line of the terminal: the other one was taken away before.
    assert len(removed) == 2
    assert all(line.rpartition(b"\x1b[K")[2].startswith(b"removed ") for line in removed)
