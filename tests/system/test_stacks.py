# timeout: 600
"""Native stacks: shares of CPU time by function and line against programs that know them."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from sonde_test import SONDE, SOURCE, environment, program, report, run, sonde, wait_for_cpu

RATE = 799
SECONDS = 3
POINTS = 0.03
WORK = SOURCE / "tests/system/progs/hot_work.h"


def line_of(mark, path=WORK):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if f"LINE {mark} " in line:
            return number
    raise AssertionError(f"no line marked {mark}")




def stolen_seconds():
    """What the machine below has kept from this guest, of all cores, since it started. The
    kernel counts it as the program's; a timer that should have rung meanwhile rings once."""
    ticks = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return int(ticks[8]) / os.sysconf("SC_CLK_TCK")


def sample(tmp_path, *command, options=(), name="run"):
    before = stolen_seconds()
    done = run(tmp_path / name, *command, options=("--rate", RATE, *options))
    answer = done.report()
    if answer["sampling"]["unavailable"]:
        pytest.skip(answer["sampling"]["unavailable"])
    truth = json.loads(done.stdout) if done.stdout.strip() else {}
    answer["stolen_s"] = stolen_seconds() - before
    return answer, truth


def shares(answer, key="share"):
    found = {}
    for function in answer["functions"]:
        found[function["name"]] = found.get(function["name"], 0) + function[key]
    return found


def check_hot(answer, truth):
    """60, 30, 10 % as the program measured them, and the lines they are on."""
    found, whole = shares(answer, "total_share"), sum(truth.values())
    for name, seconds in truth.items():
        assert found[name] == pytest.approx(seconds / whole, abs=POINTS), name
    hot = answer["lines"][0]
    assert (Path(hot["file"]).name, hot["line"]) == ("hot_work.h", line_of(60))
    assert hot["function"] == "hot_sixty"
    user = 1 - shares(answer).get("[kernel]", 0)  # being switched out on a busy machine
    assert hot["share"] / user == pytest.approx(truth["hot_sixty"] / whole, abs=POINTS)


def check_callers(answer, *names):
    """They are around nearly all samples, but for stacks that were not unwound because
    this machine had no time."""
    sampling, total = answer["sampling"], shares(answer, "total_share")
    shallow = sampling["shallow_stacks"] / sampling["samples"]
    for name in names:
        assert total[name] > 0.95 - shallow, name


def check_total(answer):
    """All samples together are the CPU time the kernel accounts for."""
    sampled = answer["sampling"]["cpu_s"]
    used = answer["summary"]["cpu_percent_avg"] / 100 * answer["run"]["duration_s"]
    stolen = answer["stolen_s"]
    assert sampled == pytest.approx(used, abs=0.01 + 0.02 * used + stolen)
    assert answer["sampling"]["coverage"] == pytest.approx(1, abs=0.03 + stolen / used)


@pytest.mark.parametrize(
    "command",
    [
        ["hot_plain", SECONDS],
        ["hot_plain", SECONDS, "threads"],
        ["hot_plain", SECONDS, "fork"],
        ["hot_pointers", SECONDS],
        ["hot_static", SECONDS],
        ["hot_loader", SECONDS, program("hot_plugin.so")],
    ],
    ids=lambda c: " ".join(map(str, c[:1] + c[2:])).replace("/", "_"),
)
def test_shares_and_lines_are_those_of_the_program(tmp_path, command):
    answer, truth = sample(tmp_path, program(command[0]), *command[1:])
    check_hot(answer, truth)
    check_total(answer)


def test_callers_have_the_time_of_what_they_call(tmp_path):
    answer, _ = sample(tmp_path, program("hot_plain"), SECONDS)
    check_callers(answer, "main", "hot_work", "hot_round")
    assert shares(answer)["hot_work"] < 0.02


def test_frame_pointers_do_without_tables(tmp_path):
    """All but the caller of a leaf, which gcc gives no frame."""
    answer, _ = sample(tmp_path, program("hot_pointers"), SECONDS)
    assert shares(answer, "total_share")["hot_work"] > 0.9


def test_waiting_is_not_sampled(tmp_path):
    answer, truth = sample(tmp_path, program("hot_plain"), 1, "idle")
    assert answer["sampling"]["cpu_s"] == pytest.approx(sum(truth.values()), rel=0.1)
    assert answer["run"]["duration_s"] > 1.9


def test_inlined_methods_are_told_apart(tmp_path):
    answer, truth = sample(tmp_path, program("hot_inline"), SECONDS)
    source = SOURCE / "tests/system/progs/hot_inline.cpp"
    whole = sum(truth.values())
    for word in ("relax", "smooth"):
        lines = [
            line
            for line in answer["lines"]
            if line["line"] == line_of(word, source) and "hot_inline.cpp" in line["file"]
        ]
        user = 1 - shares(answer).get("[kernel]", 0)
        found = sum(line["share"] for line in lines) / user
        assert found == pytest.approx(truth[word] / whole, abs=POINTS), word
        assert word in lines[0]["function"]
    check_callers(answer, "main")


def test_generated_code_has_the_names_of_its_map(tmp_path):
    answer, truth = sample(tmp_path, program("hot_jit"), 1)
    os.unlink(f"/tmp/perf-{truth['pid']}.map")
    assert shares(answer)["jit::hot loop"] > 0.9
    assert shares(answer, "total_share")["main"] > 0.9


def test_without_a_map_generated_code_is_summed_up(tmp_path):
    answer, _ = sample(tmp_path, program("hot_jit"), 1, "none")
    assert shares(answer)["[jit]"] > 0.9


def test_a_separate_debug_file_is_found(tmp_path):
    stripped = tmp_path / "stripped"
    shutil.copy(program("hot_plain"), stripped)
    for command in (
        ["objcopy", "--only-keep-debug", stripped, tmp_path / "stripped.debug"],
        ["strip", stripped],
        ["objcopy", f"--add-gnu-debuglink={tmp_path / 'stripped.debug'}", stripped],
    ):
        subprocess.run(command, check=True, cwd=tmp_path)
    answer, truth = sample(tmp_path, stripped, SECONDS)
    check_hot(answer, truth)


def test_a_stripped_program_is_one_line(tmp_path):
    stripped = tmp_path / "bare"
    shutil.copy(program("hot_plain"), stripped)
    subprocess.run(["strip", stripped], check=True)
    answer, _ = sample(tmp_path, stripped, 1)
    assert shares(answer)["[bare]"] > 0.95
    lines = [p for p in answer["provenance"] if p["metric"] == "lines"][0]
    assert lines["status"] == "measured" or "debugging" in lines["method"]


def test_a_program_replaced_meanwhile_is_not_misread(tmp_path):
    """Offsets of the old file would name functions of the new one."""
    victim = tmp_path / "victim"
    shutil.copy(program("hot_plain"), victim)
    other = program("hot_inline")
    script = f'"{victim}" 1; cp "{other}" "{victim}.new"; mv "{victim}.new" "{victim}"'
    answer, _ = sample(tmp_path, "sh", "-c", script)
    names = shares(answer)
    assert names["[victim]"] > 0.8
    assert not any("grid" in name for name in names)


def test_folded_stacks_add_up(tmp_path):
    answer, _ = sample(tmp_path, program("hot_plain"), SECONDS, "threads")
    text = sonde("export", tmp_path / "run", "--format", "folded", "-o", "-").stdout
    total, threads, roots = 0, set(), set()
    for line in text.splitlines():
        match = re.fullmatch(r"(.*) (\d+)", line)
        names = match[1].split(";")
        total += int(match[2])
        threads.add(names[1])
        roots.add(re.sub(r"-\d+$", "", names[0]))
    assert total == answer["sampling"]["samples"]
    assert {"hot-a", "hot-b"} <= threads
    assert roots == {"hot_plain"}
    assert re.search(r";hot-a;.*hot_work;hot_round;hot_sixty \d+", text)


def test_rate_zero_and_level_basic_sample_nothing(tmp_path):
    for name, options in (("a", ("--rate", 0)), ("b", ("--level", "basic"))):
        done = run(tmp_path / name, program("hot_plain"), 0.1, options=options)
        answer = done.report()
        assert answer["functions"] == [] and answer["lines"] == []
        assert answer["sampling"]["cpu_s"] is None
        status = [p for p in answer["provenance"] if p["metric"] == "functions"][0]
        assert status["status"] == "unavailable" and "--rate" in status["method"]
        assert not list((tmp_path / name).glob("stacks-*"))


def test_the_window_is_respected(tmp_path):
    options = ("--after", "0.5s", "--duration", "1s")
    answer, _ = sample(tmp_path, program("hot_plain"), 3, options=options)
    share = answer["sampling"]["cpu_s"] / answer["run"]["duration_s"]
    assert 0 < answer["sampling"]["cpu_s"] < 1.3
    assert share < 0.6


def test_samples_survive_the_supervisor(tmp_path):
    env = environment(SONDE_DIR=tmp_path / "store")
    supervisor = subprocess.Popen(
        [SONDE, "run", "-q", "--rate", str(RATE), "--", program("hot_plain"), "2"],
        env=env,
        stdout=subprocess.DEVNULL,
    )
    wait_for_cpu(supervisor, 1.2)
    supervisor.send_signal(signal.SIGKILL)
    supervisor.wait()
    for _ in range(150):
        listed = sonde("report", "@last", "--json", env=env, check=False)
        if listed.returncode == 0 and json.loads(listed.stdout)["run"]["exit"]["cause"]:
            break
        time.sleep(0.2)
    answer = json.loads(listed.stdout)
    if answer["sampling"]["unavailable"]:
        pytest.skip(answer["sampling"]["unavailable"])
    assert answer["sampling"]["samples"] > 50
    assert shares(answer)["hot_sixty"] > 0.4, "adopted, and named"


def test_text_names_functions_and_hot_lines(tmp_path):
    sample(tmp_path, program("hot_plain"), 1)
    text = sonde("report", tmp_path / "run").stdout
    assert "CPU time" in text and "hot_sixty" in text
    assert f"hot_work.h:{line_of(60)}" in text.split("HOT LINES")[1]


def test_the_program_does_not_notice(tmp_path):
    """A hostile map file of JITs, names with control characters, a broken library."""
    script = (
        "head -c 100000 /dev/urandom > /tmp/perf-$$.map; "
        "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; "
        "rm -f /tmp/perf-$$.map; exit 7"
    )
    done = run(tmp_path / "run", "sh", "-c", script, check=False)
    assert done.returncode == 7 and done.stderr == ""


def test_where_it_is_forbidden_the_report_says_why_and_what_helps(tmp_path):
    done = subprocess.run(
        [program("no_perf"), SONDE, "run", "--no-preload", "-o", tmp_path / "run", "--"]
        + ["sh", "-c", "exit 3"],
        env=environment(), capture_output=True, text=True, timeout=60,
    )
    if done.returncode == 77:
        pytest.skip("no seccomp here")
    assert done.returncode == 3
    answer = report(tmp_path / "run")
    assert answer["functions"] == [] and answer["sampling"]["cpu_s"] is None
    row = [p for p in answer["provenance"] if p["metric"] == "functions"][0]
    assert row["status"] == "unavailable"
    assert "perf_event_paranoid" in row["method"] and "sysctl" in row["method"]
    assert answer["sampling"]["unavailable"] == row["method"]


def test_memory_does_not_grow_with_stacks(tmp_path):
    """A program of ever new call paths: the tables are full at some point, and say so."""
    answer, _ = sample(tmp_path, program("deep_paths"), 2, options=("--max-trace", "2MiB"))
    size = sum(p.stat().st_size for p in (tmp_path / "run").glob("stacks-*"))
    assert size <= 2 << 20
    check_total(answer)


def test_deep_recursion_is_cut_and_counted(tmp_path):
    answer, _ = sample(tmp_path, program("deep_paths"), 1, "deep")
    assert answer["sampling"]["cut_stacks"] > 0
    assert shares(answer)["deep_leaf"] > 0.8


def test_short_processes_are_missed_and_that_is_said(tmp_path):
    script = "i=0; while [ $i -lt 300 ]; do /bin/true; i=$((i+1)); done"
    done = run(tmp_path / "run", "sh", "-c", script)
    answer = done.report()
    if answer["sampling"]["unavailable"]:
        pytest.skip(answer["sampling"]["unavailable"])
    coverage = answer["sampling"]["coverage"]
    assert coverage is None or coverage < 0.9
    if coverage is not None:
        row = [p for p in answer["provenance"] if p["metric"] == "functions"][0]
        assert "shorter than a period" in row["method"]


LATE = """
import hashlib, subprocess, sys, time
block, end = bytes(1 << 20), time.thread_time() + 11
while time.thread_time() < end:
    hashlib.sha256(block).digest()
# Nobody is told of processes and libraries that come while sampling rests.
subprocess.run([sys.executable, "-c", sys.argv[1]], check=True)
"""
CHILD = """
import time, zlib
block, end = bytes(1 << 20), time.thread_time() + 11
while time.thread_time() < end:
    zlib.crc32(block)
"""


def test_a_run_that_is_no_longer_young_is_sampled_in_spells(tmp_path):
    done = run(tmp_path / "r", "/usr/bin/python3", "-c", LATE, CHILD)
    answer = done.report()
    sampling = answer["sampling"]
    if sampling["unavailable"]:
        pytest.skip(sampling["unavailable"])
    # 10 s at 99 Hz, then an eighth of that: far fewer were taken than they stand for.
    assert sampling["taken"] < 0.75 * sampling["samples"]
    # Three blocks of 4 s, the last cut off by the end.
    assert sampling["cpu_s"] == pytest.approx(22, rel=0.3)
    crc = sum(f["share"] for f in answer["functions"] if "libz" in (f.get("module") or ""))
    assert crc == pytest.approx(0.5, abs=0.17)


def test_work_that_begins_late_is_sampled_from_its_first_step(tmp_path):
    """Ten seconds may go into imports. Whatever the sampler is doing by then, resting or in a
    spell, it looks closely from the first step on, and once."""
    after = [10.3 + 0.5 * i for i in range(8)]
    started = [
        subprocess.Popen(
            [SONDE, "run", "-q", "-o", tmp_path / f"r{i}", "--"]
            + [program("late_steps"), str(sleep_s), "1.5"],
            env=environment(SONDE_DIR=tmp_path / f"store{i}"),
        )
        for i, sleep_s in enumerate(after)
    ]
    assert [p.wait(timeout=120) for p in started] == [0] * len(after)
    for i in range(len(after)):
        sampling = report(tmp_path / f"r{i}")["sampling"]
        if sampling["unavailable"]:
            pytest.skip(sampling["unavailable"])
        # The step has to be noticed first; in spells there would be some 19.
        assert 75 <= sampling["taken"] <= 175


def perf_events(pid):
    """Descriptors of the kernel's events that a process has open."""
    found = 0
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found += "perf_event" in os.readlink(link)
        except OSError:  # closed meanwhile
            pass
    return found


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_between_two_spells_the_program_has_no_events(tmp_path):
    env = environment(SONDE_DIR=tmp_path / "store")
    burn = "import time\nwhile time.thread_time() < 29: pass"
    supervisor = subprocess.Popen(
        [SONDE, "run", "-q", "-o", tmp_path / "r", "--", "/usr/bin/python3", "-c", burn],
        env=env,
    )
    try:
        time.sleep(5)
        young = perf_events(supervisor.pid)
        if young == 0:
            pytest.skip("the kernel does not let us")
        time.sleep(6)  # ten seconds old, then a spell in each block of four
        seen = set()
        for _ in range(90):
            seen.add(perf_events(supervisor.pid))
            time.sleep(0.1)
        # Stopped beyond the next spell, it makes another plan and goes on resting.
        supervisor.send_signal(signal.SIGSTOP)
        time.sleep(6)
        supervisor.send_signal(signal.SIGCONT)
        before = cpu_seconds(supervisor.pid)
        time.sleep(2)
        assert cpu_seconds(supervisor.pid) - before < 1
    finally:
        supervisor.wait()
    # One a CPU has the ring, another is the program's: it comes and goes.
    assert min(seen) == young // 2
    assert max(seen) >= young
