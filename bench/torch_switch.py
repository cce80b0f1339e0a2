"""The loop of torch_train.py, with all of Sonde taken out and put back, window by window.

    sonde run -q -o DIR -- python bench/torch_switch.py DETOUR SETTLE_S PHASE…

A PHASE is WINDOW_S:ROUNDS:STATE,STATE…: so many rounds, in each of them a window in every
state, in an order drawn anew. Prints one JSON list: for each phase the mean step times of
the windows by state. States: on, off, or parts: memory, files, recorder, supervisor, several
of them as memory+recorder. Windows should be short (0.13 s are some 25 steps): a machine
drifts more slowly than that. Those that differ in the supervisor should not be: it has to
catch up with what it missed. "off" is:
no call goes through libsonde-preload.so, in the worker neither (detour/detour.c), nothing is
recorded, and the processes of `sonde run` stand still. What stays is the code of the
Python layer that finds itself off, and events of the kernel where a spell of sampling was
going on just then (an eighth of the time).
"""

import ctypes
import json
import mmap
import os
import random
import signal
import sys
import time
from time import perf_counter

import torch
from torch.utils.data import DataLoader
from torch_train import Images, parts, train_step

LIBRARY = b"libsonde-preload.so"
# Of a window, at most: batches made before, a supervisor that catches up.
SKIPPED, SKIPPED_S = 0.25, 0.25
MEMORY, FILES, RECORDER, SUPERVISOR = 1, 2, 4, 8  # the first two as in detour.c
ALL = MEMORY | FILES | RECORDER | SUPERVISOR
STATES = {"off": 0, "on": ALL, "memory": MEMORY, "files": FILES}
# Cores for the main thread and for the worker, when said ("0,2"): on a machine with many of
# them two threads share a core, or do not, as it happens, which is worth a third of a step.
CORES = [int(n) for n in os.environ.get("BENCH_CORES", "").split(",") if n]
STATES |= {"recorder": RECORDER, "supervisor": SUPERVISOR}


class Switch:
    """One process's way to libc; asked before every sample in the worker."""

    def __init__(self, path, shared):
        self.path, self.shared, self.state, self.pid = path, shared, ALL, 0

    def follow(self):
        if self.pid != os.getpid():
            self.pid, self.lib = os.getpid(), ctypes.CDLL(self.path)
            self.lib.detour_find(LIBRARY)
        if self.state != self.shared[0]:
            self.state = self.shared[0]
            if self.state != ALL:
                self.lib.detour_find(LIBRARY)
            if self.lib.detour_set(self.state & (MEMORY | FILES)) < 0:
                raise OSError("the table of addresses cannot be written")


class Switched(Images):
    def __init__(self, n, switch):
        super().__init__(n)
        self.switch = switch

    def __getitem__(self, i):
        if self.switch.state != self.switch.shared[0] or self.switch.pid == 0:
            self.switch.follow()
        return super().__getitem__(i)


def to_its_core(_):
    if CORES:
        os.sched_setaffinity(0, CORES[1:])


def watchers():
    """The supervisor and what else it has started but us."""
    parent, found = os.getppid(), [os.getppid()]
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                rest = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(rest[1]) == parent and int(name) != os.getpid():
            found.append(int(name))
    return found


def main(path, settle_s, phases):
    import sonde

    torch.manual_seed(0)
    torch.set_num_threads(1)
    switch = Switch(path, mmap.mmap(-1, 4096))
    switch.shared[0] = ALL
    model, optimizer = parts()
    loader = DataLoader(Switched(10**8, switch), batch_size=16, num_workers=1,
                        sampler=range(10**8), worker_init_fn=to_its_core)  # fmt: skip
    others, batches = watchers(), iter(loader)
    if CORES:
        os.sched_setaffinity(0, CORES[:1])

    def run(seconds):
        """Mean step, the beginning left out."""
        start = perf_counter()
        begin, steps = None, 0
        while True:
            train_step(model, optimizer, *next(batches))
            now = perf_counter()
            if begin is None:
                if now - start > min(SKIPPED * seconds, SKIPPED_S):
                    begin = now
            else:
                steps += 1
                if now - start > seconds and steps > 4:
                    return (now - begin) / steps * 1e3

    def set_all(state):
        switch.shared[0] = state
        switch.follow()
        (sonde.resume if state & RECORDER else sonde.pause)()
        for pid in others:
            os.kill(pid, signal.SIGCONT if state & SUPERVISOR else signal.SIGSTOP)

    def phase(window_s, rounds, states):
        found, order = {name: [] for name in states}, list(states)
        for _ in range(rounds):
            random.shuffle(order)
            for name in order:
                set_all(states[name])
                found[name].append(run(window_s))
        return found

    run(settle_s)
    switch.follow()
    try:
        answer = [phase(*p) for p in phases]
    finally:
        set_all(ALL)
    print(json.dumps(answer), flush=True)


def parsed(text):
    window_s, rounds, names = text.split(":")
    states = {n: sum(STATES[part] for part in n.split("+")) for n in names.split(",")}
    return float(window_s), int(rounds), states


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), [parsed(text) for text in sys.argv[3:]])
