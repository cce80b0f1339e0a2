"""What the system tests share: where things are, running sonde, reading its answers."""

import json
import os
import signal
import subprocess
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(os.environ.get("SONDE_SOURCE", Path(__file__).resolve().parents[2]))
BUILD = Path(os.environ.get("SONDE_BUILD", SOURCE / "build"))
SONDE = BUILD / "sonde"


def program(name):
    """A program of tests/system/progs, or NAME.so of tests/system/libs."""
    return str(BUILD / "progs" / name)


def workload(name):
    return str(BUILD / "workloads" / name)


# Debian's torch uses AMX for bfloat16 without asking the kernel for it first, and dies of
# SIGILL on processors that have it (Sapphire Rapids in a guest), Sonde or not.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")


def environment(**changes):
    """The environment without anything that could steer Sonde, then `changes`."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("SONDE_")}
    env.update({k: str(v) for k, v in changes.items()})
    return env


# LeakSanitizer looks from a second process that shares the memory of the first: whoever
# looks at /proc just then sees all of it twice.
NO_LEAK_CHECK = {"ASAN_OPTIONS": "detect_leaks=0"}


def sonde(*arguments, check=True, timeout=120, **options):
    """Runs `sonde ARGUMENTS`; stdout and stderr are kept as text."""
    options.setdefault("env", environment())
    done = subprocess.run(
        [SONDE, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        **options,
    )
    if check and done.returncode != 0:
        raise AssertionError(
            f"sonde {' '.join(map(str, arguments))}: {done.returncode}\n{done.stderr}"
        )
    return done


@dataclass
class Run:
    """One program run under `sonde run`, and where its run directory is."""

    directory: Path
    returncode: int
    stdout: str
    stderr: str

    def report(self):
        return report(self.directory)


def run(directory, *command, options=(), check=True, **more):
    """`sonde run --quiet -o DIRECTORY OPTIONS -- COMMAND`."""
    done = sonde(
        "run", "--quiet", "-o", directory, *options, "--", *command, check=check, **more
    )
    return Run(Path(directory), done.returncode, done.stdout, done.stderr)


def wait_for_cpu(supervisor, seconds):
    """Until the program of a `sonde run` has had that much CPU time, however long it takes."""
    children = f"/proc/{supervisor.pid}/task/{supervisor.pid}/children"
    ticks = 0
    while ticks < seconds * os.sysconf("SC_CLK_TCK") and supervisor.poll() is None:
        time.sleep(0.02)
        for child in Path(children).read_text().split():
            stat = Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()
            ticks = int(stat[11]) + int(stat[12])


def report(directory, **options):
    answer = json.loads(sonde("report", directory, "--json", **options).stdout)
    assert answer["schema"] == "sonde.report/1"
    return answer


def counts_by_path(answer):
    """Calls by path (a tuple of names from the outermost zone inwards)."""
    counts = defaultdict(int)
    for operation in answer["operations"]:
        counts[tuple(operation["path"])] += operation["count"]
    return counts


def counts_by_name(answer):
    counts = defaultdict(int)
    for operation in answer["operations"]:
        counts[operation["name"]] += operation["count"]
    return counts


def operation(answer, *path):
    """The one operation with this path."""
    found = [o for o in answer["operations"] if tuple(o["path"]) == path]
    assert len(found) == 1, f"{len(found)} operations {path}"
    return found[0]


def traces(directory):
    """The files of the processes in a run directory."""
    return sorted(
        p for p in Path(directory).glob("*.sonde") if p.name != "control.sonde"
    )


def disk_bytes(directory):
    """What `du` says: allocated bytes of everything below."""
    return sum(p.stat().st_blocks * 512 for p in Path(directory).rglob("*"))


def assert_consistent(answer):
    """Truths of any report, whatever ran."""
    total, children = {}, defaultdict(float)
    for o in answer["operations"]:
        path = tuple(o["path"])
        total[path] = total.get(path, 0) + o["total_s"] - o["self_s"]
        total[path] -= o.get("elsewhere_s", 0)
        if len(path) > 1:
            children[path[:-1]] += o["total_s"]
        if o["count"] > 0:
            assert o["min_ms"] <= o["mean_ms"] * (1 + 1e-9)
            assert o["mean_ms"] <= o["max_ms"] * (1 + 1e-9)
            assert o["min_ms"] <= o["p50_ms"] <= o["p95_ms"] <= o["p99_ms"] <= o["max_ms"]
    for path, below in total.items():
        tolerance = 1e-6 + 1e-6 * abs(below)
        assert abs(below - children[path]) <= tolerance, f"self + children != total: {path}"
    shares = [p["share"] for p in answer["phases"] if p["share"] is not None]
    if shares:
        assert abs(sum(shares) - 1) < 1e-6


def signal_of(returncode):
    """The signal a shell would name, 0 when there was none."""
    return signal.Signals(-returncode) if returncode < 0 else 0
