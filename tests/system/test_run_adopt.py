"""Runs whose supervisor was killed are finished by the next command that looks."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from sonde_test import SONDE, environment, program, sonde

NOTE = "finished by a later sonde command; its supervisor had died"


def run_json(directory):
    return json.loads((directory / "run.json").read_text())


class Orphan:
    """A run whose supervisor gets killed; the program lives on until told."""

    def __init__(self, tmp_path):
        self.process = subprocess.Popen(
            [SONDE, "run", "-q", program("signal_log")], cwd=tmp_path, env=environment(),
            stdout=subprocess.PIPE, text=True,
        )
        self.child = int(self.process.stdout.readline().split()[1])
        (self.directory,) = (tmp_path / ".sonde/runs").iterdir()
        self.wait_for_pid()
        self.process.kill()
        self.process.wait()

    def wait_for_pid(self):
        for _ in range(200):
            if run_json(self.directory)["pid"] == self.child:
                return
            time.sleep(0.01)
        raise AssertionError("run.json does not know the program")

    def end_program(self):
        os.kill(self.child, signal.SIGKILL)
        for _ in range(500):
            if not lives(self.child):
                return
            time.sleep(0.01)
        raise AssertionError("the program does not die")


def lives(pid):
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rsplit(")", 1)[1].split()[0] not in "ZX"


def test_while_the_program_lives_the_run_is_left_alone(tmp_path):
    orphan = Orphan(tmp_path)
    before = (orphan.directory / "run.json").read_bytes()
    sonde("list", cwd=tmp_path)
    assert (orphan.directory / "run.json").read_bytes() == before
    orphan.end_program()


@pytest.mark.parametrize("command", [["list"], ["recover"], ["report"], ["show"]])
def test_afterwards_any_look_at_runs_finishes_it(tmp_path, command):
    orphan = Orphan(tmp_path)
    time.sleep(0.2)
    orphan.end_program()
    time.sleep(0.05)
    sonde(*command, cwd=tmp_path)
    answer = run_json(orphan.directory)
    assert answer["exit"] == {"code": None, "signal": None, "cause": "unknown"}
    assert NOTE in answer["notes"]
    lived = (answer["ended_ns"] - answer["started_ns"]) / 1e9
    assert 0 <= lived < 60
    assert answer["command"] == [program("signal_log")]
    assert (orphan.directory / "run.json").stat().st_mode & 0o777 == 0o600


def test_it_is_finished_once(tmp_path):
    orphan = Orphan(tmp_path)
    orphan.end_program()
    sonde("list", cwd=tmp_path)
    first = (orphan.directory / "run.json").read_bytes()
    sonde("list", cwd=tmp_path)
    assert (orphan.directory / "run.json").read_bytes() == first


@pytest.mark.parametrize("change", [{"host": "another-machine"}, {"pid_namespace": 1}])
def test_processes_we_cannot_see_are_not_declared_dead(tmp_path, change):
    orphan = Orphan(tmp_path)
    orphan.end_program()
    answer = {**run_json(orphan.directory), **change}
    (orphan.directory / "run.json").write_text(json.dumps(answer))
    sonde("list", cwd=tmp_path)
    assert run_json(orphan.directory)["ended_ns"] is None


def test_a_boot_ends_every_run(tmp_path):
    orphan = Orphan(tmp_path)
    answer = {**run_json(orphan.directory), "boot_id": "0-0-0"}
    (orphan.directory / "run.json").write_text(json.dumps(answer))
    sonde("list", cwd=tmp_path)
    assert run_json(orphan.directory)["exit"]["cause"] == "unknown"
    orphan.end_program()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"schema": 3}', '{"schema": "sonde.run/1"}', "\0" * 100]
)
def test_a_damaged_run_json_harms_nobody(tmp_path, text):
    directory = tmp_path / ".sonde/runs/deadbeef"
    directory.mkdir(parents=True)
    (directory / "run.json").write_text(text)
    done = sonde("list", cwd=tmp_path, check=False)
    assert done.returncode >= 0
    assert (directory / "run.json").read_text() == text


def test_a_daemon_that_outlives_the_program_is_not_waited_for(tmp_path):
    start = time.monotonic()
    done = sonde("run", "-q", "-o", tmp_path / "run", "sh", "-c",
                 "setsid sleep 100 >/dev/null 2>&1 </dev/null & exit 2", check=False)
    assert done.returncode == 2
    assert time.monotonic() - start < 90
