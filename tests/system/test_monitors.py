# serial: yes
"""Monitors against programs that know what they did to the machine."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sonde_test import NO_LEAK_CHECK, SONDE, environment, program, report, run, sonde, workload

MIB = 1 << 20


@pytest.fixture(scope="module")
def use(tmp_path_factory):
    place = tmp_path_factory.mktemp("use")
    # The kernel counts what the preloaded library reads (a kilobyte) as the program's.
    done = run(
        place / "run",
        workload("known_use"),
        place,
        options=["--interval", "20ms", "--no-preload"],
        env=environment(**NO_LEAK_CHECK),
    )
    truth = {r["who"]: r for r in map(json.loads, done.stdout.splitlines())}
    return truth, done.report()


def process(answer, pid):
    (found,) = [p for p in answer["processes"] if p["pid"] == pid]
    return found


@pytest.mark.parametrize("who", ["program", "worker"])
def test_cpu_seconds_of_each_process_are_right_within_one_percent(use, who):
    truth, answer = use
    found = process(answer, truth[who]["pid"])
    assert found["cpu_s"] == pytest.approx(truth[who]["cpu_s"], rel=0.01, abs=0.003)


def test_cpu_seconds_of_the_run_are_the_sum(use):
    truth, answer = use
    total = sum(t["cpu_s"] for t in truth.values())
    assert answer["monitors"]["cpu_time"]["last"] == pytest.approx(total, rel=0.02)
    average = 100 * total / answer["run"]["duration_s"]
    assert answer["summary"]["cpu_percent_avg"] == pytest.approx(average, rel=0.03)
    assert answer["monitors"]["cpu"]["avg"] == pytest.approx(average, rel=0.05)


@pytest.mark.parametrize("who", ["program", "worker"])
def test_bytes_read_and_written_are_exact(use, who):
    truth, answer = use
    found = process(answer, truth[who]["pid"])
    assert round(found["read_mb"] * MIB) == truth[who]["read_bytes"]
    assert round(found["written_mb"] * MIB) == truth[who]["written_bytes"]


def test_rates_add_up_to_the_bytes(use):
    truth, answer = use
    written = answer["monitors"]["write"]
    watched = answer["monitors"]["cpu_time"]["points"][-1][0]
    total = sum(t["written_bytes"] for t in truth.values()) / MIB
    assert written["avg"] * watched == pytest.approx(total, rel=0.1)
    assert written["max"] > 0


def series(answer, metric, pid):
    return answer["monitors"][f"{metric}/{pid}"]


def test_the_resident_set_grows_by_what_was_mapped(use):
    truth, answer = use
    rss = series(answer, "rss", truth["program"]["pid"])
    assert rss["max"] - rss["min"] == pytest.approx(96, rel=0.02)
    found = process(answer, truth["program"]["pid"])
    assert found["peak_rss_mb"] == pytest.approx(rss["max"], rel=0.01)
    assert answer["summary"]["peak_rss_mb"] >= 0.99 * rss["max"]


def test_copy_on_write_of_a_forked_worker_shows_as_private_memory(use):
    truth, answer = use
    pid = truth["worker"]["pid"]
    private, rss = series(answer, "rss_private", pid), series(answer, "rss", pid)
    assert private["max"] - private["min"] == pytest.approx(32, rel=0.01, abs=0.5)
    assert rss["max"] - rss["min"] < 2
    found = process(answer, pid)
    assert found["peak_private_mb"] == pytest.approx(private["max"], rel=1e-3)


def test_each_process_has_its_command_parent_and_end(use):
    truth, answer = use
    main = process(answer, truth["program"]["pid"])
    worker = process(answer, truth["worker"]["pid"])
    assert worker["ppid"] == main["pid"]
    assert main["exit_code"] == 0
    assert worker["exit_code"] in (7, None)  # only a zombie that was seen tells it
    assert main["exe"] == "known_use"
    assert main["role"] == "main"


def test_series_have_units_points_and_a_named_subject(use):
    _, answer = use
    for name, one in answer["monitors"].items():
        assert one["unit"], name
        assert one["min"] <= one["avg"] * (1 + 1e-6) + 1e-6, name
        assert one["avg"] <= one["max"] * (1 + 1e-6) + 1e-6, name
        assert len(one["points"]) <= 126
        times = [t for t, _ in one["points"]]
        assert times == sorted(times) and len(set(times)) == len(times)
        assert all(0 <= t <= answer["run"]["duration_s"] + 1 for t in times)


def test_a_short_program_has_numbers_too(tmp_path):
    answer = run(tmp_path / "run", "/bin/sleep", "0.3").report()
    (only,) = answer["processes"]
    assert only["exe"] == "sleep" and only["command"] == "/bin/sleep 0.3"
    assert 0 < only["cpu_s"] < 0.2
    assert 0.3 < only["peak_rss_mb"] < 50
    assert answer["summary"]["peak_rss_mb"] >= only["peak_rss_mb"]
    assert len(answer["monitors"]["rss"]["points"]) >= 3


def test_secrets_in_command_lines_are_taken_out(tmp_path):
    script = "import time; time.sleep(0.3)"
    command = [sys.executable, "-c", script, "--api-key=hunter2", "--password", "hunter3"]
    answer = run(tmp_path / "run", *command).report()
    (only,) = answer["processes"]
    assert "hunter" not in json.dumps(answer["processes"])
    assert "--api-key=" in only["command"]
    for path in (tmp_path / "run").iterdir():
        assert b"hunter" not in path.read_bytes()


def test_no_monitors_means_none_and_says_so(tmp_path):
    answer = run(tmp_path / "run", "/bin/true", options=["--no-monitors"]).report()
    assert answer["monitors"] == {}
    (how,) = [p for p in answer["provenance"] if p["metric"] == "monitors"]
    assert how["status"] == "unavailable"
    assert not list((tmp_path / "run").glob("monitors-*"))


@pytest.mark.parametrize("interval", ["1ms", "2h", "fast"])
def test_an_interval_out_of_range_is_refused(tmp_path, interval):
    done = sonde("run", "--interval", interval, "--", "/bin/true", check=False)
    assert done.returncode == 125
    assert "--interval" in done.stderr


def test_what_cannot_be_measured_here_is_unavailable_with_a_reason(tmp_path):
    answer = run(tmp_path / "run", "/bin/sleep", "0.1").report()
    has = {name.split("/")[0] for name in answer["monitors"]}
    for how in answer["provenance"]:
        if how["metric"] in ("temp", "pressure", "cgroup", "net"):
            assert how["status"] == "unavailable" and how["method"]
    if "temperature" not in has:
        (how,) = [p for p in answer["provenance"] if p["metric"] == "temp"]
        assert "sensor" in how["method"]


DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        begun = time.process_time()
        while time.process_time() - begun < 0.3: pass
        open(sys.argv[1], "w").write(str(os.getpid()))
        time.sleep(1.5)
        os._exit(0)
    os._exit(0)
os.wait()
while not os.path.exists(sys.argv[1]): time.sleep(0.02)
time.sleep(0.5)
"""


def test_a_daemon_that_left_its_parents_is_still_seen(tmp_path):
    place = tmp_path / "pid"
    done = run(
        tmp_path / "run",
        sys.executable,
        "-c",
        DAEMON,
        place,
        options=["--interval", "50ms"],
    )
    daemon = process(done.report(), int(place.read_text()))
    assert daemon["cpu_s"] >= 0.29
    assert done.report()["monitors"]["cpu_time"]["last"] >= 0.3


def test_a_killed_supervisor_leaves_readable_monitors(tmp_path):
    place = tmp_path / "run"
    child = subprocess.Popen(
        [SONDE, "run", "-q", "-o", place, "--interval", "10ms", "--", "/bin/sleep", "250"],
        env=environment(),
        start_new_session=True,
    )
    while not list(place.glob("monitors-*.tables")):
        time.sleep(0.05)
    while report(place)["monitors"].get("rss", {}).get("samples", 0) < 10:
        time.sleep(0.05)
    child.send_signal(signal.SIGKILL)
    child.wait()
    answer = report(place)
    try:
        assert answer["monitors"]["rss"]["samples"] >= 5
        assert answer["monitors"]["rss"]["points"]
        (only,) = answer["processes"]
        assert only["peak_rss_mb"] > 0
        os.kill(only["pid"], 0)  # the program did not notice
    finally:
        os.killpg(child.pid, signal.SIGKILL)


def test_text_shows_the_machine_and_the_process_table(use, tmp_path):
    done = run(tmp_path / "run", "/bin/sleep", "0.4")
    short = sonde("report", done.directory).stdout
    assert "MACHINE" in short and "CPU" in short and "RAM" in short
    full = sonde("report", done.directory, "--full").stdout
    assert "PROCESS TABLE" in full and "/bin/sleep 0.4" in full
    assert "MONITORS" in full


def test_the_file_does_not_grow_with_the_length_of_the_run(tmp_path):
    for seconds in (3, 15, 60):  # until there were as many rounds as it takes
        done = run(tmp_path / f"{seconds}", "/bin/sleep", seconds, options=["--interval", "10ms"])
        series = done.report()["monitors"]
        if series["rss"]["samples"] > 130:
            break
    (tables,) = Path(done.directory).glob("monitors-*.tables")
    assert series["rss"]["samples"] > 130
    assert 60 <= len(series["rss"]["points"]) <= 126
    assert tables.stat().st_size < 2 * MIB


def mapped_from(pid, directory):
    """MiB resident of mappings of files in `directory`, as smaps has them."""
    kib, inside = 0, False
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        words = line.split()
        if "-" in words[0] and not words[0].endswith(":"):
            inside = len(words) > 5 and words[5].startswith(f"{directory}/")
        elif inside and words[0] == "Rss:":
            kib += int(words[1])
    return kib / 1024


def test_sondes_own_mappings_are_told_apart(tmp_path):
    place = tmp_path / "run"
    child = subprocess.Popen(
        [SONDE, "run", "-q", "-o", place, "--interval", "100ms", "--"]
        + [program("steady"), "400", "8000"],
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    for _ in range(250):
        child.stdout.readline()
    (trace,) = [p for p in place.glob("*.sonde") if p.name != "control.sonde"]
    pid = int(trace.name.split("-")[1])
    truth = mapped_from(pid, place)
    whole = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / MIB
    child.communicate()
    series = report(place)["monitors"]
    assert truth > 0
    assert series[f"sonde_rss/{pid}"]["max"] == pytest.approx(truth, abs=0.13)
    assert series[f"rss/{pid}"]["last"] == pytest.approx(whole - truth, abs=0.5)


def test_every_process_has_the_same_keys(use, tmp_path):
    traced = run(tmp_path / "run", program("zoo"), "good").report()["processes"]
    keys = [set(one) for one in traced + use[1]["processes"]]
    assert all(k == keys[0] for k in keys)


SPIN = "import time\nend = time.perf_counter() + 2\nwhile time.perf_counter() < end: pass"


@pytest.mark.skipif(os.cpu_count() < 2, reason="a neighbour needs a core of its own")
def test_neighbours_on_cores_that_are_not_ours_do_not_count(use, tmp_path):
    """A job in a cpuset is not disturbed by who uses the other cores."""
    ours, theirs = sorted(os.sched_getaffinity(0))[:2]
    pinned = ["taskset", "-c"]
    neighbour = subprocess.Popen([*pinned, str(theirs), sys.executable, "-c", "while True: pass"])
    try:
        command = [SONDE, "run", "-q", "--interval", "50ms", "-o", tmp_path / "run", "--"]
        subprocess.run(
            [*pinned, str(ours), *map(str, command), sys.executable, "-c", SPIN],
            check=True,
            env=environment(),
        )
    finally:
        neighbour.kill()
        neighbour.wait()
    monitors = report(tmp_path / "run")["monitors"]
    assert monitors["cpu_allowed"]["max"] <= 101
    assert monitors["cpu_allowed"]["avg"] >= monitors["cpu"]["avg"] - 15
    assert monitors["cpu_system"]["avg"] > monitors["cpu_allowed"]["avg"] + 40
    confined = len(os.sched_getaffinity(0)) < os.sysconf("SC_NPROCESSORS_ONLN")
    assert ("cpu_allowed" in use[1]["monitors"]) == confined
