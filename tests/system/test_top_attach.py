# waits: yes
"""`sonde top` and `sonde attach`: programs that already run, watched from outside."""

import os
import re
import signal
import subprocess
import sys
import time

import pytest
from sonde_test import SONDE, environment, program, report, sonde
from terminal import Terminal

BUSY = "import time\nend = time.time() + 200\nwhile time.time() < end: sum(range(1000))"


@pytest.fixture
def busy():
    child = subprocess.Popen([os.path.realpath(sys.executable), "-c", BUSY])
    time.sleep(0.3)
    yield child
    child.kill()
    child.wait()


def test_attach_reports_on_a_process_and_lets_it_go_on(tmp_path, busy):
    out = tmp_path / "r"
    done = sonde("attach", busy.pid, "--duration", "1.5s", "-o", out)
    assert busy.poll() is None
    assert "attached" in done.stdout and "MACHINE" in done.stdout
    answer = report(out)
    assert answer["run"]["exit"]["code"] is None
    assert 1.4 < answer["run"]["duration_s"] < 100  # and the process goes on for 200
    mine = [p for p in answer["processes"] if p["pid"] == busy.pid]
    assert mine and mine[0]["cpu_s"] > 0.05
    assert answer["monitors"]["cpu"]["max"] > 0


def test_attach_sees_the_python_of_a_running_process(tmp_path, busy):
    if sys.version_info[1] > 13:
        pytest.skip("a Python that Sonde has no layout for")
    for seconds in (1, 5, 20):  # a busy machine does not let us look often
        sonde("attach", busy.pid, "--duration", f"{seconds}s", "-q", "-o", tmp_path / f"{seconds}")
        answer = report(tmp_path / f"{seconds}")
        if answer["python"]["samples"] > 10:
            break
    assert answer["python"]["samples"] > 10
    assert any(line["file"] == "<string>" and line["line"] == 3 for line in answer["lines"])


def test_attach_samples_the_native_code_of_a_running_process(tmp_path, busy):
    for seconds in (1, 5, 20):
        out = tmp_path / f"{seconds}"
        sonde("attach", busy.pid, "--duration", f"{seconds}s", "-q", "-o", out)
        answer = report(out)
        if answer["sampling"]["unavailable"]:
            pytest.skip(answer["sampling"]["unavailable"])
        if answer["sampling"]["samples"] > 30:
            break
    assert answer["sampling"]["samples"] > 30
    native = [f for f in answer["functions"] if f["language"] == "native"]
    assert any("python" in f["module"] for f in native), native[:5]


def wait_until_attached(out):
    file = out / "run.json"
    while not file.exists() or '"proc_start"' not in file.read_text():
        time.sleep(0.05)


def test_interrupting_attach_keeps_the_report_and_the_process(tmp_path, busy):
    out = tmp_path / "r"
    watcher = subprocess.Popen(
        [SONDE, "attach", str(busy.pid), "-o", out],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    wait_until_attached(out)
    time.sleep(0.5)
    watcher.send_signal(signal.SIGINT)
    text, _ = watcher.communicate(timeout=60)
    assert watcher.returncode == 0 and "attached" in text
    assert busy.poll() is None


def test_attach_ends_with_the_process(tmp_path, busy):
    watcher = subprocess.Popen(
        [SONDE, "attach", "-q", str(busy.pid), "-o", tmp_path / "r"], env=environment()
    )
    wait_until_attached(tmp_path / "r")
    busy.kill()
    busy.wait()
    assert watcher.wait(timeout=60) == 0


def test_attach_says_what_is_wrong_with_the_number(tmp_path):
    for word, message in [
        ("999999999", "no process number|there is no process"),
        ("x", "no process number"),
        ("0", "no process number"),
    ]:
        done = sonde("attach", word, check=False, cwd=tmp_path)
        assert done.returncode == 2 and re.search(message, done.stderr), done.stderr
    assert sonde("attach", check=False, cwd=tmp_path).returncode == 2


def test_attach_tells_of_the_run_a_process_is_in_already(tmp_path):
    with subprocess.Popen(
        [SONDE, "run", "-q", "-o", tmp_path / "a", "--", "sleep", "60"], env=environment()
    ) as supervisor:
        children = f"/proc/{supervisor.pid}/task/{supervisor.pid}/children"
        while not (
            pids := [
                pid
                for pid in open(children).read().split()
                if open(f"/proc/{pid}/comm").read() == "sleep\n"
            ]
        ):
            time.sleep(0.05)
        done = sonde("attach", pids[0], "--duration", "0.2s", "-o", tmp_path / "b")
        assert "is recorded already" in done.stderr
        os.kill(int(pids[0]), signal.SIGTERM)
        supervisor.wait()


def test_top_shows_a_run_as_text_until_it_ends(tmp_path):
    with subprocess.Popen(
        [SONDE, "run", "-q", "--", program("steps"), "40", "50"]
        if os.path.exists(program("steps"))
        else [SONDE, "run", "-q", "--", "sleep", "2"],
        cwd=tmp_path,
        env=environment(),
    ) as supervisor:
        while not list(tmp_path.glob(".sonde/runs/*/monitors-*")):
            time.sleep(0.05)
        done = sonde("top", "--interval", "0.3s", cwd=tmp_path)
        assert done.stdout.count("PROCESSES") >= 1
        assert "running" in done.stdout
        assert supervisor.wait(timeout=60) == 0


def test_top_of_a_process_leaves_nothing_behind(tmp_path, busy):
    before = set(os.listdir("/tmp"))
    done = sonde("top", "--once", busy.pid, cwd=tmp_path)
    assert str(busy.pid) in done.stdout and "CPU" in done.stdout
    assert not [n for n in set(os.listdir("/tmp")) - before if n.startswith("sonde-top-")]
    assert busy.poll() is None


def test_top_without_a_run_says_what_to_do(tmp_path):
    done = sonde("top", check=False, cwd=tmp_path)
    assert done.returncode == 1 and "sonde run --" in done.stderr


def test_top_on_a_terminal_obeys_keys_and_gives_the_terminal_back(tmp_path, busy):
    env = environment(TERM="xterm", LANG="C.UTF-8")
    with Terminal([SONDE, "top", str(busy.pid)], tmp_path, env) as terminal:
        terminal.expect(r"PROCESSES")
        terminal.expect(r"q leave")
        terminal.type("h")
        terminal.expect(r"Any key goes back")
        terminal.type("x")
        terminal.expect(r"every 1 s", after=len(terminal.text))
        behind = len(terminal.text)
        terminal.type("s")
        terminal.expect(r"memory", after=behind)  # only what changes is drawn
        terminal.type("q")
        assert os.waitstatus_to_exitcode(terminal.wait()) == 0
