"""On network and FUSE file systems a run lives in scratch and comes home at the end."""

import json
import os
import signal
import subprocess
import time

import pytest
from sonde_test import SONDE, counts_by_name, environment, program, report, sonde


def run_json(directory):
    return json.loads((directory / "run.json").read_text())


def scratch_of(tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir(exist_ok=True)
    return environment(SONDE_PLACE="scratch", SONDE_SCRATCH=scratch), scratch


def test_the_run_comes_home(tmp_path):
    env, scratch = scratch_of(tmp_path)
    done = sonde("run", "-q", "-o", tmp_path / "run", program("zoo"), "good", env=env)
    assert done.returncode == 0
    assert list(scratch.iterdir()) == []
    answer = report(tmp_path / "run")
    assert counts_by_name(answer)["forward"] == 20
    assert run_json(tmp_path / "run")["live"] is None
    assert any("live files were kept in" in n for n in run_json(tmp_path / "run")["notes"])
    for file in (tmp_path / "run").iterdir():
        assert file.stat().st_mode & 0o777 == 0o600


def test_the_result_is_the_same_as_in_place(tmp_path):
    env, _ = scratch_of(tmp_path)
    sonde("run", "-q", "-o", tmp_path / "a", program("zoo"), "good", env=env)
    sonde("run", "-q", "-o", tmp_path / "b", program("zoo"), "good",
          env=environment(SONDE_PLACE="direct"))
    assert counts_by_name(report(tmp_path / "a")) == counts_by_name(report(tmp_path / "b"))


def start_hanging(tmp_path):
    env, scratch = scratch_of(tmp_path)
    watched = subprocess.Popen([SONDE, "run", "-q", "-o", tmp_path / "run", program("zoo"), "hang"],
                               env=env, stdout=subprocess.PIPE, text=True)
    assert watched.stdout.readline() == "ready\n"
    end = time.monotonic() + 60
    while run_json(tmp_path / "run")["pid"] is None and time.monotonic() < end:
        time.sleep(0.02)
    return watched, scratch


def test_a_live_run_is_read_where_it_lies(tmp_path):
    watched, scratch = start_hanging(tmp_path)
    try:
        assert len(list(scratch.iterdir())) == 1
        assert next(scratch.iterdir()).stat().st_mode & 0o777 == 0o700
        assert report(tmp_path / "run")["run"]["state"] == "running"
        assert report(tmp_path / "run")["processes"]
    finally:
        watched.terminate()
        watched.wait(60)
    assert list(scratch.iterdir()) == []


def test_a_run_without_its_supervisor_is_brought_home_by_the_next_command(tmp_path):
    watched, scratch = start_hanging(tmp_path)
    pid = run_json(tmp_path / "run")["pid"]
    watched.kill()
    watched.wait(60)
    os.kill(pid, signal.SIGKILL)
    end = time.monotonic() + 60
    while os.path.exists(f"/proc/{pid}") and time.monotonic() < end:
        time.sleep(0.05)
    assert sonde("recover", tmp_path / "run", check=False).returncode in (0, 1)
    answer = report(tmp_path / "run")
    assert "stuck" in counts_by_name(answer) or answer["processes"]
    assert run_json(tmp_path / "run")["live"] is None
    assert list(scratch.iterdir()) == []


def test_a_program_that_cannot_start_leaves_nothing(tmp_path):
    env, scratch = scratch_of(tmp_path)
    assert sonde("run", "-o", tmp_path / "run", "no-such-thing", env=env,
                 check=False).returncode == 127
    assert list(scratch.iterdir()) == []
    assert not (tmp_path / "run").exists()


def test_a_run_json_cannot_make_us_remove_other_directories(tmp_path):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("kept")
    watched, _ = start_hanging(tmp_path)
    watched.terminate()
    watched.wait(60)
    document = run_json(tmp_path / "run")
    document.update(live=str(precious), ended_ns=None, exit=None, pid=None, supervisor=None)
    (tmp_path / "run/run.json").write_text(json.dumps(document))
    sonde("recover", tmp_path / "run", check=False)
    assert (precious / "file").read_text() == "kept"


def test_a_fuse_file_system_is_recognised(tmp_path):
    if not os.path.exists("/dev/fuse"):
        pytest.skip("no /dev/fuse")
    if subprocess.run(["sh", "-c", "command -v bindfs"], capture_output=True).returncode:
        pytest.skip("bindfs is not installed")
    below, mount = tmp_path / "below", tmp_path / "mount"
    below.mkdir()
    mount.mkdir()
    if subprocess.run(["bindfs", below, mount], capture_output=True).returncode:
        pytest.skip("bindfs cannot mount here")
    try:
        env = environment(SONDE_SCRATCH=tmp_path)
        sonde("run", "-q", "-o", mount / "run", program("zoo"), "good", env=env)
        assert any("for this is fuse" in n for n in run_json(mount / "run")["notes"])
        assert counts_by_name(report(mount / "run"))["forward"] == 20
    finally:
        subprocess.run(["umount", mount], capture_output=True)
