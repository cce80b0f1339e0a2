# waits: yes
"""The supervisor keeps off the core that the program's main thread computes on."""

import json
import os

import pytest
from sonde_test import run

CORES = len(os.sched_getaffinity(0))

PROGRAM = """
import json, os, sys, time

def work(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass

def own_core():
    with open("/proc/self/task/%d/stat" % os.getpid()) as file:
        return int(file.read().rpartition(")")[2].split()[36])

def looks(count):
    \"\"\"Of so many, how often the supervisor may not run where we do; its cores at the end.\"\"\"
    apart = 0
    for _ in range(count):
        work(0.3)
        cores = os.sched_getaffinity(os.getppid())
        apart += own_core() not in cores
    return apart, len(cores)

busy = looks(8)
time.sleep(1.2)
print(json.dumps([busy, len(os.sched_getaffinity(os.getppid())), len(os.sched_getaffinity(0))]))
"""


def asked(tmp_path, **more):
    done = run(tmp_path / "run", "/usr/bin/python3", "-c", PROGRAM, **more)
    return json.loads(done.stdout)


@pytest.mark.skipif(not 2 <= CORES <= 4, reason="for machines with two to four cores")
def test_it_may_run_anywhere_but_there_while_the_program_computes(tmp_path):
    (apart, cores), idle, own = asked(tmp_path)
    assert apart >= 4  # the first look comes before it knows; threads move now and then
    assert cores == CORES - 1
    assert idle == CORES  # nobody computes: everywhere again
    assert own == CORES  # the program itself is never moved


def test_on_one_core_it_stays_where_it_is(tmp_path):
    first = min(os.sched_getaffinity(0))
    all_cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {first})
    try:
        (apart, cores), idle, own = asked(tmp_path)
    finally:
        os.sched_setaffinity(0, all_cores)
    assert (apart, cores, idle, own) == (0, 1, 1, 1)
