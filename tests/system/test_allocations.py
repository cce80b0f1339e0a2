# labels: no_asan
"""What the malloc family did, against programs that know it themselves."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from sonde_test import SONDE, SOURCE, environment, program, run, sonde, workload

LIBRARIES = Path("/usr/lib/x86_64-linux-gnu")


def allocations(done):
    return done.report()["allocations"]


def by_size(answer):
    """Allocations by the largest size of their class."""
    return {s["up_to"]: s["count"] for s in answer["sizes"]}


def heap_files(directory):
    return list(Path(directory).glob("heap-*.tables"))


# ---- Exact -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    done = run(tmp_path_factory.mktemp("known") / "run", workload("known_allocations"))
    return json.loads(done.stdout), allocations(done)


@pytest.mark.parametrize(
    ("key", "truth"),
    [
        ("count", "count"),
        ("bytes", "bytes"),
        ("frees", "frees"),
        ("freed_bytes", "freed"),
        ("reallocs", "reallocs"),
        ("peak_bytes", "peak"),
        ("live_bytes", "live"),
    ],
)
def test_the_whole_family_is_counted_exactly(known, key, truth):
    assert known[1][key] == known[0][truth]


def test_each_zone_gets_what_was_allocated_in_it(known):
    truth, answer = known
    zones = {z["zone"]: [z["count"], z["bytes"], z["frees"]] for z in answer["zones"]}
    assert {k: v for k, v in zones.items() if k} == truth["zones"]


def test_zones_are_told_apart_where_events_are_held_back(tmp_path):
    """With --min-zone a lane's public cursor stands still: it does not tell of new zones."""
    options = ["--min-zone", "1ns"]
    done = run(tmp_path / "run", workload("known_allocations"), options=options)
    truth, zones = json.loads(done.stdout), allocations(done)["zones"]
    found = {z["zone"]: [z["count"], z["bytes"], z["frees"]] for z in zones if z["zone"]}
    assert found == truth["zones"]


def test_sizes_and_zones_add_up_to_the_whole(known):
    answer = known[1]
    for key in ("count", "bytes"):
        assert sum(s[key] for s in answer["sizes"]) == answer[key]
        assert sum(z[key] for z in answer["zones"]) == answer[key]


def test_counts_alone_are_the_same_counts_and_nothing_else(tmp_path):
    done = run(tmp_path / "run", workload("known_allocations"), options=["--no-sites"])
    truth, answer = json.loads(done.stdout), allocations(done)
    for key in ("count", "bytes", "frees", "reallocs"):
        assert answer[key] == truth[key]
    zones = {z["zone"]: [z["count"], z["bytes"], z["frees"]] for z in answer["zones"]}
    assert {k: v for k, v in zones.items() if k} == truth["zones"]
    # What was not looked at is not known, which is not zero.
    for key in ("freed_bytes", "peak_bytes", "live_bytes"):
        assert answer[key] is None
    assert answer["sites"] == []
    known = {p["metric"]: p["status"] for p in done.report()["provenance"]}
    assert known["allocations"] == "measured"
    assert known["allocations.sites"] == known["allocations.peak_bytes"] == "unavailable"
    assert "--no-sites" in sonde("report", tmp_path / "run").stdout


def test_the_program_does_not_notice(tmp_path):
    bare = subprocess.run([workload("known_allocations")], capture_output=True, text=True)
    done = run(tmp_path / "run", workload("known_allocations"))
    ours, theirs = json.loads(done.stdout), json.loads(bare.stdout)
    # Where blocks lie, and so how they are rounded, may differ by what start-up took.
    assert ours.pop("freed") == pytest.approx(theirs.pop("freed"), abs=1000)
    assert ours.pop("peak") == pytest.approx(theirs.pop("peak"), abs=1000)
    assert ours == theirs


def test_threads_lose_nothing(tmp_path):
    answer = allocations(run(tmp_path / "run", workload("known_allocations"), 64))
    truth = 64 * sum(100 + i % 50 for i in range(10000))
    outside = next(z for z in answer["zones"] if z["zone"] is None)
    assert 640000 <= outside["count"] <= 640000 + 8 * 64  # libc's own for a thread
    assert truth <= outside["bytes"] <= truth + 2000 * 64


# ---- Leaks -----------------------------------------------------------------------


def line_of(leak):
    """File and line: from the report, or by hand where there are no symbols."""
    if leak["line"]:
        return Path(leak["file"]).name, leak["line"]
    place = subprocess.run(
        ["addr2line", "-e", leak["module"], hex(leak["offset"])],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    found = re.match(r".*/(.*):(\d+)", place)
    return found[1], int(found[2])


def marked_line():
    lines = (SOURCE / "workloads" / "known_leak.c").read_text().splitlines()
    return next(i for i, text in enumerate(lines, 1) if "/* LEAK */" in text)


ROUNDS = 5000  # of a millisecond and more: what lives shorter is still setting up


@pytest.fixture(scope="module")
def leaking(tmp_path_factory):
    return allocations(
        run(tmp_path_factory.mktemp("leak") / "run", workload("known_leak"), "leak", ROUNDS)
    )


def test_the_leaking_line_is_named_and_no_other(leaking):
    assert [line_of(leak) for leak in leaking["leaks"]] == [("known_leak.c", marked_line())]


def test_the_leak_is_estimated(leaking):
    truth = ROUNDS * 8 * 4096
    assert leaking["leaks"][0]["live_bytes"] == pytest.approx(truth, rel=0.25)


def test_the_report_names_the_leak(tmp_path):
    done = sonde("run", "-o", tmp_path / "run", "--", workload("known_leak"), "leak", ROUNDS)
    assert re.search(r"leak \S*known_leak", done.stderr)


def test_a_program_of_a_second_has_no_leak(tmp_path):
    answer = allocations(run(tmp_path / "run", workload("known_leak"), "leak", 400))
    assert answer["leaks"] == []


def test_a_cache_that_grows_and_stands_still_is_no_leak(tmp_path):
    answer = allocations(run(tmp_path / "run", workload("known_leak"), "clean", ROUNDS))
    assert answer["leaks"] == []
    assert answer["live_bytes"] >= 11e6  # although much is live


def test_growth_over_steps_is_a_leak_and_set_up_is_none(tmp_path):
    answer = allocations(run(tmp_path / "run", program("alloc_life"), "steps"))
    (leak,) = answer["leaks"]
    assert leak["zone"] == "step"
    assert leak["bytes_per_step"] == pytest.approx(65536, rel=0.5)


def test_estimates_of_sites_sum_up_to_what_was_counted(leaking):
    assert sum(s["bytes"] for s in leaking["sites"]) == pytest.approx(
        leaking["bytes"], rel=0.2
    )


# ---- Moments ---------------------------------------------------------------------


def test_gigabytes_a_second_are_sampled_more_thinly_and_as_rightly(tmp_path):
    """16 GB in blocks of 200 kB, within seconds: fewer samples, weighted by what they are."""
    program = "import ctypes; m = ctypes.CDLL(None); m.malloc.restype = ctypes.c_void_p\n"
    program += "f = m.free; f.argtypes = [ctypes.c_void_p]\n"
    program += "for i in range(80_000): f(m.malloc(200_000))"
    done = run(tmp_path / "run", "/usr/bin/python3", "-c", program)
    answer = allocations(done)
    assert answer["bytes"] >= 16e9
    of_sites = sum(s["bytes"] for s in answer["sites"])
    assert of_sites == pytest.approx(answer["bytes"], rel=0.06)
    usual = answer["bytes"] / (512 << 10)
    if answer["bytes_per_s"] > 2e9:  # else a busy machine has made it slow enough
        assert sum(s["samples"] for s in answer["sites"]) < 0.75 * usual


def zones_of(answer):
    return {z["zone"]: [z["count"], z["bytes"], z["frees"]] for z in answer["zones"]}


def test_a_busy_thread_is_counted_in_spells_that_stand_for_all(tmp_path):
    """By zone within a few percent, and so the bytes; what is live is known as before."""
    done = run(
        tmp_path / "run",
        program("alloc_spells"),
        5,
        env=environment(SONDE_ALLOC_EXACT_S="0"),
    )
    truth, answer, zones = json.loads(done.stdout), allocations(done), None
    zones = zones_of(answer)
    assert answer["exact"] is False
    for name in ("many", "few"):
        assert zones[name] == pytest.approx(truth[name], rel=0.05)
        assert zones[name] != truth[name]
    assert answer["live_bytes"] == pytest.approx(truth["live"], abs=(64 << 10) + 16384)
    assert answer["peak_bytes"] >= truth["live"] - (64 << 10)
    assert answer["peak_bytes"] <= truth["live"] + 40000 + 12000 + 16384
    of = {p["metric"]: p for p in done.report()["provenance"]}
    assert of["allocations"]["resolution"] == "estimate"
    assert "about" in sonde("report", done.directory, "--full").stdout


@pytest.mark.parametrize(("how", "missed"), [("fork", 0), ("clone", 27)])
def test_a_child_of_a_busy_thread_is_counted_by_itself(tmp_path, how, missed):
    """In a child that only the kernel knows of, from when what the parent's thread had
    left until it would tell its bytes is used up: half a megabyte at most."""
    done = run(
        tmp_path / "run",
        program("alloc_spells"),
        2.5,
        how,
        env=environment(SONDE_ALLOC_EXACT_S="0"),
    )
    answer = allocations(done)
    assert answer["exact"] is False  # else the parent was in no spell
    assert answer["coverage"]["processes"] == 2
    assert 1000 - missed <= by_size(answer)[32 << 10] <= 1000


@pytest.mark.parametrize(("seconds", "exact_s"), [(1.2, None), (3, "inf")])
def test_young_programs_and_those_that_ask_are_counted_exactly(
    tmp_path, seconds, exact_s
):
    more = {} if exact_s is None else {"SONDE_ALLOC_EXACT_S": exact_s}
    env = environment(**more)
    done = run(tmp_path / "run", program("alloc_spells"), seconds, env=env)
    truth, answer = json.loads(done.stdout), allocations(done)
    assert answer["exact"] is True
    for name in ("many", "few"):
        assert zones_of(answer)[name] == truth[name]


def test_a_storm_of_threads_and_forks_loses_nothing(tmp_path):
    all_threads, forks = 64 * 4 * 20000, 30
    answer = allocations(
        run(tmp_path / "run", program("alloc_storm"), 64, all_threads, forks)
    )
    sizes = by_size(answer)
    assert sizes[4096] == all_threads
    assert sizes[8192] == forks * 1000
    assert answer["coverage"]["processes"] == 1 + forks


def test_more_threads_than_numbers_lose_nothing(tmp_path):
    answer = allocations(
        run(tmp_path / "run", program("alloc_storm"), 1024, 1024 * 4 * 100, 1)
    )
    assert by_size(answer)[4096] == 1024 * 4 * 100


def test_children_of_every_kind_count_for_themselves(tmp_path):
    done = run(tmp_path / "run", program("alloc_forks"), check=False)
    assert done.returncode in (0, 10)
    sizes = by_size(allocations(done))
    assert sizes[4096] == 100
    assert sizes[8192] == (30 if done.returncode == 0 else 20)
    assert sizes[16384] == 10  # by vfork: its parent's memory, its parent's count


def test_allocations_before_main_and_after_it_are_counted(tmp_path):
    answer = allocations(
        run(
            tmp_path / "run",
            program("alloc_forks"),
            env=environment(LD_PRELOAD=program("alloc_early.so")),
            check=False,
        )
    )
    # Constructors and destructors of the program itself and of /bin/true; the children
    # of forks end without theirs.
    assert by_size(answer)[4096] == 100 + 2 * 1500


def test_allocations_of_signal_handlers_are_counted(tmp_path):
    done = run(tmp_path / "run", program("alloc_life"), "handler")
    sizes = by_size(allocations(done))
    assert sizes[8192] == 300000
    assert sizes.get(4096, 0) == int(done.stdout[::1])


def test_allocations_of_ending_threads_are_counted(tmp_path):
    done = run(tmp_path / "run", program("alloc_life"), "exit")
    # One in the thread and one per round of destructors, of which libc has four.
    assert by_size(allocations(done))[4096] == 50 * 5


def test_snapshots_show_what_changed(tmp_path):
    answer = allocations(run(tmp_path / "run", program("alloc_life"), "snapshots"))
    first, second, third = answer["snapshots"]
    block = 4008  # malloc_usable_size of 4,000 bytes
    assert [s["name"] for s in answer["snapshots"]] == ["first", "second", "third"]
    assert second["difference_bytes"] == 2048 * block
    assert third["difference_bytes"] == -2048 * block
    assert second["count"] - first["count"] == 2048
    assert third["frees"] - second["frees"] == 2048
    assert second["sites"][0]["difference_bytes"] == pytest.approx(2048 * 4000, rel=0.5)


def test_a_killed_program_leaves_its_counts(tmp_path):
    directory = tmp_path / "run"
    with subprocess.Popen(
        [SONDE, "run", "--quiet", "-o", directory, "--", program("alloc_life"), "wait"],
        stdout=subprocess.PIPE,
        env=environment(),
    ) as process:
        process.stdout.read(1)
        (path,) = heap_files(directory)
        os.kill(int(path.name.split("-")[2]), signal.SIGKILL)
        process.wait(timeout=120)
    answer = json.loads(sonde("report", directory, "--json").stdout)["allocations"]
    assert by_size(answer)[4096] == 1000


# ---- Every event -----------------------------------------------------------------


@pytest.mark.parametrize("options", [["--trace", "alloc"], ["--level", "comprehensive"]])
def test_every_event_is_kept(tmp_path, options):
    done = run(tmp_path / "run", workload("known_allocations"), options=options)
    truth, answer = json.loads(done.stdout), allocations(done)
    assert answer["coverage"]["events"] == truth["count"] + truth["frees"]
    assert answer["coverage"]["events_lost"] == 0
    assert (answer["count"], answer["peak_bytes"]) == (truth["count"], truth["peak"])


@pytest.mark.parametrize("options", [["--trace", "alloc"], ["--level", "comprehensive"]])
def test_events_beyond_the_bound_are_counted(tmp_path, options):
    done = run(tmp_path / "run", program("alloc_storm"), 64, 1024000, 5, options=options)
    answer = allocations(done)
    coverage = answer["coverage"]
    assert coverage["events"] > 100000
    assert coverage["events_lost"] > 0
    kept_and_lost = coverage["events"] + coverage["events_lost"]
    assert kept_and_lost == pytest.approx(answer["count"] + answer["frees"], rel=0.05)
    assert by_size(answer)[4096] == 1024000  # counts stay exact


def test_an_unknown_kind_of_event_is_refused(tmp_path):
    done = sonde("run", "-o", tmp_path / "run", "--trace", "x", "--", "true", check=False)
    assert done.returncode == 125
    assert "alloc, io" in done.stderr


# ---- Switched off, or out of reach -----------------------------------------------


@pytest.mark.parametrize(
    ("options", "more"),
    [
        (["--no-preload"], {}),
        (["--level", "basic"], {}),
    ],
)
def test_nothing_is_preloaded_when_not_wanted(tmp_path, options, more):
    done = run(
        tmp_path / "run", "sh", "-c", "echo $LD_PRELOAD", options=options, **more
    )
    assert "libsonde" not in done.stdout
    assert heap_files(tmp_path / "run") == []
    answer = allocations(done)
    assert (answer["count"], answer["bytes"], answer["peak_bytes"]) == (None, None, None)


def test_a_part_of_the_tree_can_be_switched_off(tmp_path):
    done = run(tmp_path / "run", "env", "SONDE_DISABLE=1", workload("known_allocations"))
    assert [p["exe"] for p in allocations(done)["processes"]] == ["env"]


def test_what_the_user_preloads_stays(tmp_path):
    done = run(
        tmp_path / "run",
        "sh",
        "-c",
        "echo $LD_PRELOAD",
        env=environment(LD_PRELOAD=program("alloc_early.so")),
    )
    ours, theirs = done.stdout.strip().split(":")
    assert "libsonde-preload.so" in ours
    assert theirs == program("alloc_early.so")


HELLO = """
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    char *volatile p = malloc(10000);
    p[0] = 1;
    free(p);
    puts("hello");
    return 7;
}
"""


def build(tmp_path, *flags, compiler="gcc"):
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")
    source, target = tmp_path / "hello.c", tmp_path / "hello"
    source.write_text(HELLO)
    done = subprocess.run(
        [compiler, *flags, source, "-o", target], capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"{compiler} cannot: {done.stderr[-200:]}")
    return target


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("kind", ["address", "thread", "leak", "undefined"])
def test_sanitised_programs_run_unchanged(tmp_path, compiler, kind):
    target = build(tmp_path, f"-fsanitize={kind}", compiler=compiler)
    bare = subprocess.run([target], capture_output=True, text=True)
    if bare.returncode != 7:
        pytest.skip(f"does not run here at all: {bare.stderr[-200:]}")
    done = run(tmp_path / "run", target, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (7, "hello\n", bare.stderr)
    if kind in ("address", "thread"):
        assert "left alone" in " ".join(allocations(done)["coverage"]["not_seen"])


def test_a_static_program_runs_and_the_report_says_what_is_missing(tmp_path):
    target = build(tmp_path, "-static")
    done = run(tmp_path / "run", target, check=False)
    assert (done.returncode, done.stdout) == (7, "hello\n")
    assert "statically linked" in " ".join(done.report()["notes"])


def test_a_setuid_program_is_left_alone(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root to make one")
    place = Path("/tmp") / f"sonde-setuid-{os.getpid()}"
    place.mkdir(mode=0o777)
    try:
        place.chmod(0o777)
        target = place / "hello"
        shutil.copy(build(tmp_path), target)
        target.chmod(0o4755)
        sonde_copy = place / "sonde"
        shutil.copy(SONDE, sonde_copy)
        shutil.copy(SONDE.parent / "libsonde-preload.so", place)
        bare = subprocess.run([target], user=65534, capture_output=True, text=True)
        if bare.returncode != 7:
            pytest.skip("cannot run as another user here")
        done = subprocess.run(
            [sonde_copy, "run", "-o", place / "run", "--", target],
            user=65534,
            capture_output=True,
            text=True,
            env=environment(),
        )
        assert (done.returncode, done.stdout) == (7, "hello\n")
        assert heap_files(place / "run") == []
        assert "setuid" in done.stderr
    finally:
        shutil.rmtree(place)


OWN_MALLOC = """
#include <stddef.h>
#include <string.h>
#include <unistd.h>
static char memory[1 << 20];
static size_t used;
void *malloc(size_t n) { void *p = memory + used; used += (n + 15) & ~15ul; return p; }
void free(void *p) { (void)p; }
void *calloc(size_t n, size_t m) { return memset(malloc(n * m), 0, n * m); }
void *realloc(void *p, size_t n) { void *q = malloc(n); return p ? memcpy(q, p, n) : q; }
int main(void) {
    char *volatile p = strdup("own");
    return write(1, p, 3) == 3 ? 7 : 1;
}
"""


def test_a_program_with_a_malloc_of_its_own_keeps_it(tmp_path):
    if not shutil.which("gcc"):
        pytest.skip("no gcc")
    source, target = tmp_path / "own.c", tmp_path / "own"
    source.write_text(OWN_MALLOC)
    subprocess.run(["gcc", "-fno-builtin", "-w", source, "-o", target], check=True)
    done = run(tmp_path / "run", target, check=False)
    assert (done.returncode, done.stdout) == (7, "own")
    answer = allocations(done)
    assert answer["count"] is None
    assert "malloc of its own" in " ".join(answer["coverage"]["not_seen"])


def test_an_executable_at_a_fixed_address_is_seen(tmp_path):
    done = run(tmp_path / "run", program("alloc_fixed"))
    assert by_size(allocations(done))[8192] == 1000


@pytest.mark.parametrize("name", ["libjemalloc.so.2", "libtcmalloc_minimal.so.4"])
def test_other_allocators_work_and_are_seen(tmp_path, name):
    if not (LIBRARIES / name).exists():
        pytest.skip(f"no {name}")
    env = environment(LD_PRELOAD=LIBRARIES / name)
    bare = subprocess.run(
        [workload("known_allocations"), "8"], capture_output=True, text=True, env=env
    )
    done = run(tmp_path / "run", workload("known_allocations"), 8, env=env)
    assert done.stdout == bare.stdout
    truth, answer = json.loads(done.stdout), allocations(done)
    for zone in answer["zones"]:
        if zone["zone"]:
            counts = [zone["count"], zone["bytes"], zone["frees"]]
            assert counts == truth["zones"][zone["zone"]]


# ---- Programs --------------------------------------------------------------------

PYTHON = """
import os, subprocess, threading
work = [threading.Thread(target=lambda: [bytes(i) for i in range(2000)]) for _ in range(9)]
[t.start() for t in work]
[t.join() for t in work]
print(subprocess.run(["echo", "hi"], capture_output=True).stdout)
pid = os.fork()
if pid == 0:
    os._exit(3)
print(os.waitpid(pid, 0)[1])
raise SystemExit(4)
"""
CPLUSPLUS = """
#include <cstdio>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>
struct alignas(128) Wide { char x[1000]; };
int main() {
    for (int i = 0; i < 100; i++) {
        delete new long;
        delete[] new int[25000];
        delete new Wide;
        delete[] new Wide[3];
        int *p = new (std::nothrow) int(3);
        delete p;
    }
    try { throw std::runtime_error("x"); } catch (std::exception &e) { std::puts(e.what()); }
    try { ::operator new(~std::size_t(0) >> 1); } catch (std::bad_alloc &) { std::puts("no"); }
    return 6;
}
"""
PROGRAMS = {
    "shell": ["bash", "-c", "for i in $(seq 20); do x=$(echo $i); done; echo $x; exit 7"],
    "perl": ["perl", "-e", '$h{$_} = $_ x 9 for 1..9999; print scalar(%h), "\\n"; exit 4'],
    "python": ["/usr/bin/python3", "-c", PYTHON],
    "awk": ["awk", "BEGIN { for (i = 0; i < 9999; i++) a[i] = i; print length(a); exit 5 }"],
    "pipe": ["sh", "-c", "sort /etc/services | head -3"],
    "clean environment": ["env", "-i", "/bin/echo", "x"],
    "node": ["node", "-e", "console.log([...Array(9999).keys()].length); process.exit(9)"],
    "file size limit": ["bash", "-c", "ulimit -f 100; perl -e 'print 1 x 99; exit 3'"],
    "address space limit": ["bash", "-c", "ulimit -v 400000; perl -e 'print 1; exit 3'"],
    "few descriptors": ["bash", "-c", "ulimit -n 10; perl -e 'print 1; exit 3'"],
}


@pytest.mark.parametrize("options", [[], ["--level", "comprehensive"]])
@pytest.mark.parametrize("how", ["prctl", "syscall"])
def test_a_program_that_gives_up_system_calls_lives(tmp_path, how, options):
    command = [program("alloc_sealed"), how]
    bare = subprocess.run(command)
    if bare.returncode != 0:
        pytest.skip("no seccomp here")
    answer = allocations(run(tmp_path / "run", *command, options=options))
    assert by_size(answer)[4096] == 40001


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_run_unchanged(tmp_path, name):
    command = PROGRAMS[name]
    if not shutil.which(command[0]):
        pytest.skip(f"no {command[0]}")
    bare = subprocess.run(command, capture_output=True, text=True, env=environment())
    done = run(tmp_path / "run", *command, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (
        bare.returncode,
        bare.stdout,
        bare.stderr,
    )


def test_cplusplus_new_and_delete_are_counted(tmp_path):
    if not shutil.which("g++"):
        pytest.skip("no g++")
    source, target = tmp_path / "x.cpp", tmp_path / "x"
    source.write_text(CPLUSPLUS)
    subprocess.run(["g++", "-O0", source, "-o", target], check=True)
    done = run(tmp_path / "run", target, check=False)
    assert (done.returncode, done.stdout) == (6, "x\nno\n")
    answer = allocations(done)
    sizes = by_size(answer)
    assert sizes[131072] >= 100  # int[25000]
    assert sizes[1024] >= 100  # Wide
    assert sizes[4096] == 100 + 1  # Wide[3], and stdout's buffer
    assert answer["failed"] == 1


def test_it_takes_little_time_to_start(tmp_path):
    """Not a benchmark: a start-up that waits for anything would show here."""
    start = time.monotonic()
    run(tmp_path / "run", "sh", "-c", "for i in $(seq 100); do ls /dev/null; done")
    assert time.monotonic() - start < 60
    assert len(heap_files(tmp_path / "run")) >= 100


def test_a_full_budget_is_told(tmp_path):
    done = run(
        tmp_path / "run",
        "sh",
        "-c",
        "for i in $(seq 30); do ls /dev/null; done",
        options=["--max-trace", "2MiB"],
    )
    assert done.stdout == "/dev/null\n" * 30
    assert "found no room" in " ".join(done.report()["notes"])


# ---- Used again, in a trial ------------------------------------------------------


def kept(tmp_path, **env):
    done = run(tmp_path / "run", program("alloc_kept"), env=environment(**env))
    return json.loads(done.stdout), allocations(done)


def test_a_trial_hands_large_blocks_out_again(tmp_path):
    """The program checks what it is given: zeroed, aligned, large enough, nobody else's."""
    found, counted = kept(tmp_path, SONDE_TRIAL_KEEP=1 << 30)
    assert found["faults"] < 1000  # ten blocks of 10,240 pages each
    assert found["anew"]  # in the child of a fork
    assert found["left_mb"] > 6 * 40
    # What the program did is counted as ever.
    plain = kept(tmp_path / "plain")[1]
    assert (counted["count"], counted["frees"]) == (plain["count"], plain["frees"])


def test_a_trial_keeps_no_more_than_it_may(tmp_path):
    found = kept(tmp_path, SONDE_TRIAL_KEEP=100 << 20)[0]
    assert found["faults"] < 1000
    assert found["left_mb"] < 100 + 60  # the rest is the heap's


@pytest.mark.parametrize("keep", [{}, {"SONDE_TRIAL_KEEP": "x"}, {"SONDE_TRIAL_KEEP": 0}])
def test_nothing_is_kept_unless_a_trial_asks(tmp_path, keep):
    found = kept(tmp_path, **keep)[0]
    assert found["faults"] > 10 * 5000
    assert found["left_mb"] < 120
