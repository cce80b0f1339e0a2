# labels: no_asan
"""Single allocations and I/O calls, against programs that count them themselves."""

import csv
import json
from collections import Counter

import pytest
from sonde_test import SONDE, run, sonde, workload
from test_io import SIZE, lay_out

PRELOAD = SONDE.parent / "libsonde-preload.so"
pytestmark = pytest.mark.skipif(
    not PRELOAD.exists(), reason="no libsonde-preload.so (sanitised build)"
)


def rows(directory, what, form="csv"):
    done = sonde("export", directory, "--format", form, "--what", what, "-o", "-")
    assert done.returncode == 0, done.stderr
    if form == "jsonl":
        return [json.loads(line) for line in done.stdout.splitlines()]
    return list(csv.DictReader(done.stdout.splitlines()))


# ---- Allocations -----------------------------------------------------------------


@pytest.fixture(scope="module")
def allocated(tmp_path_factory):
    base = tmp_path_factory.mktemp("alloc") / "run"
    done = run(base, workload("known_allocations"), options=["--trace", "alloc"])
    return json.loads(done.stdout), base


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_every_allocation_and_free_is_exported_with_its_bytes(allocated, form):
    truth, base = allocated
    events = rows(base, "alloc-events", form)
    count, size = Counter(), Counter()
    for e in events:
        count[e["kind"]] += 1
        size[e["kind"]] += int(e["bytes"])
    assert count == {"alloc": truth["count"], "free": truth["frees"]}
    assert size == {"alloc": truth["bytes"], "free": truth["freed"]}


def test_each_event_knows_its_zone_thread_and_time(allocated):
    truth, base = allocated
    events = rows(base, "alloc-events")
    zones = {}
    for e in events:
        z = zones.setdefault(e["zone"], [0, 0, 0])
        if e["kind"] == "alloc":
            z[0] += 1
            z[1] += int(e["bytes"])
        else:
            z[2] += 1
    assert {k: v for k, v in zones.items() if k} == truth["zones"]
    times = [float(e["t_s"]) for e in events]
    assert times == sorted(times) and times[0] >= 0
    assert {e["pid"] for e in events} == {e["tid"] for e in events}  # one thread


def test_an_address_is_freed_as_often_as_it_was_given_out(allocated):
    balance = Counter()
    for e in rows(allocated[1], "alloc-events"):
        balance[e["address"]] += 1 if e["kind"] == "alloc" else -1
        assert balance[e["address"]] in (0, 1)
    assert not +balance


def test_the_call_sites_come_with_the_events_when_asked(tmp_path):
    done = run(
        tmp_path / "run", workload("known_allocations"), options=["--trace", "alloc,stacks"]
    )
    truth = json.loads(done.stdout)
    events = rows(tmp_path / "run", "alloc-events")
    assert sum(e["kind"] == "alloc" for e in events) == truth["count"]
    named = [e for e in events if e["kind"] == "alloc" and e["function"]]
    assert len(named) == truth["count"]
    assert {e["function"] for e in named if e["zone"] == "large"} == {"large"}
    # A free has no call site but still its zone.
    assert sum(e["kind"] == "free" and e["zone"] == "large" for e in events) == 3


# ---- Calls ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def moved(tmp_path_factory):
    base = tmp_path_factory.mktemp("io")
    lay_out(base / "files", ["read", "pread", "zone"])
    done = run(
        base / "run",
        workload("known_io"),
        base / "files",
        "read",
        "pread",
        "zone",
        "write",
        options=["--trace", "io"],
    )
    assert done.returncode == 0, done.stderr
    return done.report(), rows(base / "run", "io-events"), base / "run"


def of_file(events, name, *operations):
    return [
        e for e in events if e["path"].endswith("/" + name) and e["operation"] in operations
    ]


def test_every_byte_of_every_call_is_exported(moved):
    report, events, _ = moved
    for name, operation in [
        ("input.read", "read"),
        ("input.pread", "pread"),
        ("output.write", "write"),
    ]:
        assert sum(int(e["bytes"]) for e in of_file(events, name, operation)) == SIZE
        assert len(of_file(events, name, "open")) == len(of_file(events, name, "close")) == 1
    files = {f["path"]: f for f in report["io"]["files"]}
    for path, f in files.items():
        calls = [e for e in events if e["path"] == path]
        assert sum(e["operation"] in ("read", "pread") for e in calls) == f["reads"]
        assert sum(e["operation"] in ("write", "pwrite") for e in calls) == f["writes"]
    assert len(events) == report["io"]["events"]


def test_offsets_follow_each_other_and_calls_took_time(moved):
    reads = of_file(moved[1], "input.pread", "pread")
    at = 0
    for e in sorted(reads, key=lambda e: int(e["offset"])):
        assert int(e["offset"]) == at
        at += int(e["bytes"])
    assert at == SIZE
    assert all(float(e["latency_ms"]) > 0 for e in reads)
    assert all(int(e["tid"]) == int(e["pid"]) for e in reads)


def test_calls_know_their_zone(moved):
    inside = [e for e in moved[1] if e["zone"] == "load"]
    assert sum(int(e["bytes"]) for e in inside if "read" in e["operation"]) == SIZE


# ---- Elsewhere -------------------------------------------------------------------


def test_the_timeline_shows_them_too(moved, allocated):
    done = sonde("export", moved[2], "--format", "chrome", "-o", "-")
    events = [e for e in json.loads(done.stdout)["traceEvents"] if e.get("cat") == "io"]
    assert len(events) == len(moved[1])
    assert sum(e["args"]["bytes"] for e in events if e["name"] == "write") >= SIZE
    done = sonde("export", allocated[1], "--format", "chrome", "-o", "-")
    events = json.loads(done.stdout)["traceEvents"]
    instants = [e for e in events if e.get("cat") == "allocation" and e["ph"] == "i"]
    assert len(instants) == allocated[0]["count"] + allocated[0]["frees"]
    assert any(e["ph"] == "C" and e["name"] == "traced allocations" for e in events)


def test_the_report_says_where_to_look(allocated, moved):
    assert "--what alloc-events" in sonde("report", allocated[1]).stdout
    assert "--what io-events" in sonde("report", moved[2]).stdout


def test_a_run_without_events_says_how_to_get_them(tmp_path):
    run(tmp_path / "run", workload("known_allocations"))
    for what, flag in (("alloc-events", "--trace alloc"), ("io-events", "--trace io")):
        out = tmp_path / "none.csv"
        done = sonde(
            "export", tmp_path / "run", "--format", "csv", "--what", what, "-o", out, check=False
        )
        assert done.returncode == 2 and flag in done.stderr
        assert not out.exists()
