"""bench/livepair.py: two programs in turns, and what is made of their stamps."""

import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import livepair  # noqa: E402

# The same work in each step, WORK times; and a child, which must stand still as well.
PROGRAM = """
import mmap, os, sys, time
work, path = int(sys.argv[1]), sys.argv[2]
file = open(path, "r+b")
stamps = memoryview(mmap.mmap(file.fileno(), 0)).cast("d")
parent = os.getpid()
if os.fork() == 0:
    while os.getppid() == parent:
        time.sleep(0.01)
    os._exit(0)
for i in range(1, len(stamps)):
    for _ in range(work):
        sum(range(20000))
    stamps[i] = time.perf_counter()
    if stamps[0]: break
"""


def left(program):
    """Processes that still have the program in their command line."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if str(program).encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
        except OSError:
            pass
    return found


def side(began, ended, stamps):
    return SimpleNamespace(
        began=began, ended=ended, stamps=SimpleNamespace(all=lambda: stamps)
    )


def test_a_step_that_was_cut_counts_the_time_it_ran():
    # Steps of 2 s; it runs 0–3, 10–13 and 20–23: the second and the fourth are cut.
    course = livepair.Course(side([0, 10, 20], [3, 13, 23], [2, 11, 13, 22]))
    assert course.stamps == [2, 4, 6, 8]
    assert course.step_s(range(0, 2)) == pytest.approx(3 / 1.5)
    assert course.step_s(range(1, 3)) == pytest.approx(6 / 2.5)  # the last never ended
    assert course.median_s(range(0, 3)) == 2


def test_a_stamp_after_the_stop_was_sent_belongs_to_the_window_before():
    course = livepair.Course(side([0, 10], [3, 13], [1, 3.0001, 12]))
    assert course.stamps == [1, 3, 5]


def test_the_interval_of_equal_ratios_is_that_ratio():
    assert livepair.interval([1.1] * 8) == pytest.approx((1.1, 1.1, 1.1))
    ratio, low, high = livepair.interval([0.9, 0.95, 1.0, 1.05, 1.1, 1.0, 1.0, 1.02])
    assert low < ratio < high


def test_more_work_is_seen_and_nobody_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(livepair, "WINDOW_S", 0.2)
    monkeypatch.setattr(livepair, "WARM_S", 0.2)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    commands = [[sys.executable, program, 1], [sys.executable, program, 3]]
    pair = livepair.run_pair(commands, dict(os.environ), 2, 1)
    # By the wall clock windows of 0.2 s are at the mercy of whoever else runs.
    assert 1.5 < pair.median < 6
    assert 1.5 < pair.cpu < 6
    assert len(pair.blocks) == 2
    limit = time.monotonic() + 20
    while left(program) and time.monotonic() < limit:
        time.sleep(0.02)
    assert not left(program)


def test_a_program_that_fails_is_told(tmp_path):
    fails = [sys.executable, "-c", "raise SystemExit('no such thing')"]
    with pytest.raises(RuntimeError, match="no such thing"):
        livepair.run_pair([fails, fails], dict(os.environ), 1, 0)
