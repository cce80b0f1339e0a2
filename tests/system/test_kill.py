# serial: yes
"""SIGKILL at any instant, to anybody: per thread, ended <= reported <= begun.

The program counts its own zones in a page of its own (progs/kill_threads.c), which
outlives every process. SONDE_KILLS sets the number of rounds (200; soak 1,000) and
SONDE_KILL_SEED repeats a sequence: a failure names the round's seed.
"""

import contextlib
import mmap
import os
import random
import shutil
import signal
import struct
import subprocess
import time

import pytest
from sonde_test import SONDE, assert_consistent, counts_by_path, environment, program, report, sonde

THREADS = 8
HEAD, PER_THREAD, PAGE = 64, 64, 64 + 64 * 64
ROUNDS = int(os.environ.get("SONDE_KILLS", 200))
SEED = int(os.environ.get("SONDE_KILL_SEED", time.time_ns() % 1_000_000_000))


class Page:
    """struct page of progs/kill_threads.c."""

    def __init__(self, path):
        self.path = path
        path.write_bytes(bytes(PAGE))
        with path.open("r+b") as file:
            self.bytes = mmap.mmap(file.fileno(), PAGE)

    def word(self, offset):
        return struct.unpack_from("<Q", self.bytes, offset)[0]

    @property
    def ready(self):
        return self.word(0) == 1

    @property
    def pid(self):
        return self.word(16)

    def stop(self):
        struct.pack_into("<Q", self.bytes, 8, 1)

    def thread(self, i):
        return struct.unpack_from("<4Q", self.bytes, HEAD + i * PER_THREAD)


def is_gone(pid):
    """Dead: no process, or a zombie nobody has waited for yet.

    The main thread is a zombie as soon as it has died, the others may still run:
    field 20 counts the threads.
    """
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
            return fields[0] in "ZX" and int(fields[17]) <= 1
    except (FileNotFoundError, ProcessLookupError):
        return True


def wait_until(condition, what, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited {seconds} s for {what}"
        time.sleep(0.0005)


def kill(*pids):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def start(directory, page, options):
    return subprocess.Popen(
        [SONDE, "run", "--quiet", "-o", directory, *options, "--"]
        + [program("kill_threads"), page.path, str(THREADS)],
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def end_program(victim, rng, page, supervisor):
    """Kills as `victim` says; afterwards the program is dead. True: it ended in order."""
    if victim == "program":
        kill(page.pid)
    elif victim == "both":
        pids = [page.pid, supervisor.pid]
        rng.shuffle(pids)
        kill(*pids)
    else:
        kill(supervisor.pid)
        time.sleep(rng.uniform(0, 0.03))  # the program goes on without a supervisor
        if victim == "supervisor, then stop":
            page.stop()
            wait_until(lambda: is_gone(page.pid), "the program to end by itself")
            return True
        kill(page.pid)
    wait_until(lambda: is_gone(page.pid), "the program to die")
    return False


def check_counts(page, answer, in_order):
    counts = counts_by_path(answer)
    for i in range(THREADS):
        begun, ended, inner_begun, inner_ended = page.thread(i)
        outer, inner = counts[(f"t{i}",)], counts[(f"t{i}", f"t{i}.in")]
        assert ended <= outer <= begun, f"t{i}: {ended} <= {outer} <= {begun}"
        assert inner_ended <= inner <= inner_begun, (
            f"t{i}.in: {inner_ended} <= {inner} <= {inner_begun}"
        )
        if in_order:
            assert outer == begun == ended
    assert sum(counts.values()) <= sum(sum(page.thread(i)[::2]) for i in range(THREADS))


def one_round(directory, seed):
    rng = random.Random(seed)
    page = Page(directory / "page")
    run_directory = directory / "run"
    victim = rng.choice(
        ["program", "both", "supervisor, then program", "supervisor, then stop"]
    )
    options = rng.choice([[], ["--max-trace", "8MiB"], ["--max-trace", "32MiB"]])
    supervisor = start(run_directory, page, options)
    try:
        wait_until(lambda: page.pid != 0, "the program to start")
        if rng.random() < 0.8:  # else: while it sets itself up
            wait_until(lambda: page.ready, "the threads")
            time.sleep(rng.uniform(0, 0.06))
        in_order = end_program(victim, rng, page, supervisor)
    finally:
        if page.pid:
            kill(page.pid)
        if victim != "program":
            kill(supervisor.pid)
        status = supervisor.wait(timeout=120)
    if victim == "program":
        assert status == -signal.SIGKILL  # sonde run dies as its program did
    if rng.random() < 0.3:
        sonde("recover", run_directory)
    answer = report(run_directory)
    check_counts(page, answer, in_order)
    assert_consistent(answer)
    assert answer["summary"]["lost"] == 0
    if rng.random() < 0.2:  # reading changes nothing; nothing is counted twice
        assert counts_by_path(report(run_directory)) == counts_by_path(answer)


@pytest.mark.parametrize("part", range(10))
def test_everything_ended_is_reported_and_nothing_twice(tmp_path, part):
    for number in range(part, ROUNDS, 10):
        seed = SEED + number
        directory = tmp_path / str(number)
        directory.mkdir()
        try:
            one_round(directory, seed)
        except AssertionError as error:
            raise AssertionError(f"SONDE_KILL_SEED={seed} SONDE_KILLS=1: {error}") from error
        shutil.rmtree(directory)


def test_without_a_kill_the_counts_are_exact(tmp_path):
    page = Page(tmp_path / "page")
    supervisor = start(tmp_path / "run", page, ["--max-trace", "8MiB"])
    wait_until(lambda: page.ready, "the threads")
    time.sleep(0.2)
    page.stop()
    assert supervisor.wait(timeout=120) == 0
    check_counts(page, report(tmp_path / "run"), in_order=True)


def test_the_report_says_how_the_program_died_and_where(tmp_path):
    page = Page(tmp_path / "page")
    supervisor = start(tmp_path / "run", page, [])
    wait_until(lambda: page.ready, "the threads")
    time.sleep(0.05)
    kill(page.pid)
    supervisor.wait(timeout=120)
    answer = report(tmp_path / "run")
    assert answer["run"]["exit"]["signal"] in (signal.SIGKILL, "SIGKILL")
    assert answer["run"]["exit"]["code"] is None
    text = sonde("report", tmp_path / "run").stdout
    assert "SIGKILL" in text
    assert any(f"t{i}" in text for i in range(THREADS))


def test_a_run_whose_supervisor_was_killed_is_listed_and_adopted(tmp_path):
    page = Page(tmp_path / "page")
    env = environment(SONDE_DIR=tmp_path / "store")
    supervisor = subprocess.Popen(
        [SONDE, "run", "--quiet", "--", program("kill_threads"), page.path, "2"],
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: page.ready, "the threads")
    kill(supervisor.pid, page.pid)
    supervisor.wait(timeout=120)
    wait_until(lambda: is_gone(page.pid), "the program to die")
    assert "kill_threads" in sonde("list", env=env).stdout
    answer = report("@last", env=env)
    outer = counts_by_path(answer)[("t0",)]
    begun, ended, *_ = page.thread(0)
    assert ended <= outer <= begun
