# serial: yes
"""Python stacks read from outside: the right lines, the right time, nothing disturbed."""

import os
import re
import subprocess
import sys

import pytest
from pythons import interpreters
from sonde_test import BUILD, SOURCE, run, sonde

# Shares of a few hundred samples, of programs that may lose their cores to others.
pytestmark = pytest.mark.flaky(reruns=2)

PROGRAM = SOURCE / "tests/system/progs/py_known_times.py"
BURSTS = SOURCE / "tests/system/progs/py_bursts.py"
ASKS = SOURCE / "tests/system/progs/py_asks_clock.py"


def lines_of(word):
    """Numbers of the lines marked with `# WORD`."""
    text = PROGRAM.read_text().splitlines()
    return {i + 1 for i, line in enumerate(text) if line.endswith(f"# {word}")}


def seconds(answer, word, key):
    marked = lines_of(word)
    return sum(
        line[key]
        for line in answer["lines"]
        if line["file"].endswith(PROGRAM.name) and line["line"] in marked
    )


def function_seconds(answer, *names):
    return sum(
        f["self_s"] for f in answer["functions"] if re.split(r"\.", f["name"])[0] in names
    )


@pytest.mark.parametrize("minor", interpreters())
def test_time_goes_to_the_lines_that_took_it(tmp_path, minor):
    done = run(
        tmp_path / "r", interpreters()[minor], PROGRAM, 6
    )
    cheap, dear, slept = map(float, done.stdout.split())
    answer = done.report()
    python = answer["python"]
    assert python["version"] == f"3.{minor}"
    # One in a hundred, and what chance may add to it in so few.
    allowed = python["samples"] * 0.01
    assert python["invalid"] <= allowed + 3 * allowed**0.5
    # The CPU clock is the kernel's, of which the first look misses the interpreter's start and
    # the last one the end; which line it belongs to is sampled: 240 looks at the least.
    total = python["cpu_s"]
    used = answer["summary"]["cpu_percent_avg"] / 100 * answer["run"]["duration_s"]
    assert 0.93 * used - 0.05 <= total <= 1.01 * used + 0.02
    # By function, because a generator expression has frames of its own.
    burnt_cheap = function_seconds(answer, "burn_cheap")
    burnt_dear = function_seconds(answer, "burn_dear", "<genexpr>")
    assert burnt_cheap + burnt_dear == pytest.approx(cheap + dear, rel=0.08)
    assert burnt_cheap / (burnt_cheap + burnt_dear) == pytest.approx(0.25, abs=0.08)
    # What the main thread waited for is wall time without CPU time.
    assert seconds(answer, "SLEEP", "main_self_s") >= slept * 0.8
    assert seconds(answer, "SLEEP", "self_s") <= 0.1 * slept + 0.05
    # The other thread's wait is not the main thread's.
    assert seconds(answer, "IDLE", "main_self_s") == 0


@pytest.mark.parametrize("minor", list(interpreters())[:1])
def test_who_sleeps_between_bursts_has_not_burnt_what_came_before(tmp_path, minor):
    """Looks are farther apart than a burst is long, and a loop has a length of its own."""
    answer = run(tmp_path / "r", interpreters()[minor], BURSTS, 8).report()
    took = {f["name"]: f["total_s"] for f in answer["functions"]}
    short, long, rest = (took.get(n, 0) for n in ("short_burst", "long_burst", "rest"))
    # About 400 looks: a standard deviation of 2.5 points.
    assert short / (short + long) == pytest.approx(11 / 37, abs=0.09)
    assert rest <= 0.04 * (short + long)
    assert short + long + rest == pytest.approx(answer["python"]["cpu_s"], rel=0.15)


@pytest.mark.parametrize("minor", [11] if 11 in interpreters() else [])
def test_who_waits_for_a_core_does_not_run(tmp_path, minor):
    """Four others want each core. The program loses its own where it asks for the time, a
    hundredth of its work, and is found there by most looks."""
    others = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(4 * len(os.sched_getaffinity(0)))
    ]
    try:
        answer = run(tmp_path / "r", interpreters()[minor], ASKS, 2).report()
    finally:
        for one in others:
            one.kill()
            one.wait()
    took = {f["name"]: f["total_s"] for f in answer["functions"]}
    # About 150 looks find it with a core.
    assert took["work"] >= 0.75 * (took["work"] + took.get("ask", 0)), took


@pytest.mark.parametrize("minor", list(interpreters())[-1:])
def test_recursion_counts_once_in_the_total_of_a_function(tmp_path, minor):
    answer = run(
        tmp_path / "r", interpreters()[minor], PROGRAM, 3
    ).report()
    deep = next(f for f in answer["functions"] if f["name"] == "deep")
    assert deep["total_s"] <= answer["python"]["cpu_s"] * 1.001
    # Three quarters; on a busy machine some thirty looks find it with a core.
    assert deep["total_s"] >= answer["python"]["cpu_s"] * 0.3


def test_a_program_that_is_no_python_has_no_python_in_its_report(tmp_path):
    answer = run(tmp_path / "r", "sleep", "0.3").report()
    assert answer["python"] is None


@pytest.mark.parametrize("minor", list(interpreters())[-1:])
def test_the_text_names_the_line(tmp_path, minor):
    run(tmp_path / "r", interpreters()[minor], PROGRAM, 2)
    text = sonde("report", tmp_path / "r").stdout
    assert re.search(r"PYTHON .*\n.*py_known_times\.py:\d+", text), text


KNOWN, WRITES = 1, 2


@pytest.mark.parametrize("minor", interpreters())
def test_functions_that_write_are_known_by_the_names_they_use(tmp_path, minor):
    run(tmp_path / "r", interpreters()[minor], SOURCE / "tests/system/progs/py_writers.py")
    told = subprocess.run(
        [BUILD / "progs/py_code_flags", tmp_path / "r"], capture_output=True, text=True, check=True
    )
    flags = {name: int(bits) for bits, name in map(str.split, told.stdout.splitlines())}
    assert flags["rows"] == flags["tells"] == KNOWN | WRITES
    assert flags["counts"] == KNOWN
    # Of libraries nobody asks; the module itself uses none of these names.
    assert all(not flags[name] for name in flags if name.startswith("_find_and_load"))
