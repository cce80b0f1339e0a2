"""What a zone costs in Python: run by bench/python.py with one interpreter.

Arguments: folder of python_floor, run directory, passes, zones. Everything alternates
within the process, pass by pass, in CPU time of this thread; the loop around each subject is
measured and taken off. Prints one JSON object.
"""

from __future__ import annotations

import contextlib
import cProfile
import json
import os
import sys
import time

sys.path.insert(0, sys.argv[1])

import python_floor  # noqa: E402

import sonde  # noqa: E402

RUN, PASSES, ZONES = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
zone = sonde.zone("zone")
calls = 0


def loop(n):
    for _ in range(n):
        pass


def empty_manager(n, m=python_floor.empty):
    for _ in range(n):
        with m:
            pass


def usual_manager(n, m=python_floor.usual):
    for _ in range(n):
        with m:
            pass


def with_zone(n, z=zone):
    for _ in range(n):
        with z:
            pass


def inline(n):
    for _ in range(n):
        with sonde.zone("zone"):
            pass


def inline_phase(n):
    for _ in range(n):
        with sonde.zone("phase", phase="forward"):
            pass


def begin_end(n, z=zone):
    begin, end = sonde.begin, sonde.end
    for _ in range(n):
        begin(z)
        end(z)


def function():
    pass


decorated = sonde.profile(function)


def bare_call(n):
    for _ in range(n):
        function()


def decorated_call(n):
    for _ in range(n):
        decorated()


@contextlib.contextmanager
def python_manager(times=[0.0, 0.0]):  # noqa: B006 (kept between calls)
    times[0] = time.perf_counter()
    yield
    times[1] += time.perf_counter() - times[0]


def with_contextmanager(n):
    for _ in range(n):
        with python_manager():
            pass


def measured(subject, n):
    start = time.thread_time_ns()
    subject(n)
    return (time.thread_time_ns() - start) / n


def rows(subjects, passes, n):
    found = {subject.__name__: [] for subject in subjects}
    for _ in range(passes):
        for subject in subjects:
            found[subject.__name__].append(measured(subject, n))
    return found


def peers():
    """Names and functions of the peers that are installed."""
    yield "@contextmanager, perf_counter", with_contextmanager, 10
    profiler = cProfile.Profile()

    def under_cprofile(n):
        profiler.enable()
        bare_call(n)
        profiler.disable()

    yield "cProfile, per call", under_cprofile, 10
    with contextlib.suppress(ImportError):
        import viztracer

        tracer = viztracer.VizTracer(verbose=0, tracer_entries=1_000_000)

        def log_event(n):
            for _ in range(n):
                with tracer.log_event("zone"):
                    pass

        yield f"viztracer {viztracer.__version__} log_event", log_event, 100
    with contextlib.suppress(ImportError):
        import torch

        def record_function(n):
            for _ in range(n):
                with torch.profiler.record_function("zone"):
                    pass

        yield (
            f"torch {torch.__version__.split('a')[0]} record_function",
            record_function,
            100,
        )


def main():
    floor = [python_floor.floor(ZONES) / ZONES for _ in range(PASSES)]
    base = [loop, empty_manager, usual_manager, bare_call]
    ours = [with_zone, inline, inline_phase, begin_end, decorated_call]
    off = rows([*base, *ours], PASSES, ZONES)
    sonde.session(
        output=RUN,
        max_trace=32 << 20,
        enable_performance_monitoring=False,
        generate_reports=False,
    ).start()
    # To steady state: every block of the trace a recycled one. The folding thread goes
    # to another core.
    with_zone(4_000_000)
    cores = sorted(os.sched_getaffinity(0))
    for task in os.listdir("/proc/self/task"):
        one = cores[0] if int(task) == os.getpid() else cores[-1]
        os.sched_setaffinity(int(task), {one})
    on = rows([*base, *ours], PASSES, ZONES)
    lost = sonde.lost()
    sonde.current_session().stop()
    compared = {
        name: [measured(f, ZONES // less) for _ in range(3)]
        for name, f, less in peers()
    }
    zones = 4_000_000 + PASSES * ZONES * len(ours)
    print(
        json.dumps(
            {
                "python": sys.version.split()[0],
                "floor": floor,
                "off": off,
                "on": on,
                "peers": compared,
                "zones": zones,
                "lost": lost,
            }
        )
    )


main()
