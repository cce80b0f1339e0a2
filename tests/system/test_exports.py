# labels: no_asan
# waits: yes
"""Every export, read back by somebody else's parser: counts and totals as in the report."""

import collections
import csv
import gzip
import io
import json
import os
import re
import subprocess
import sys

import pytest
import readers
from sonde_test import SONDE, environment, run, sonde, workload

BURN = """
def inner(n):
    s = 0
    for i in range(n):
        s += i * i
    return s

def outer():
    for _ in range(400):  # a second: on a crowded machine nobody looks at a shorter run
        inner(60000)

outer()
"""


class Exported:
    def __init__(self, directory):
        self.directory = directory
        self.report = json.loads(sonde("report", directory, "--json").stdout)

    def file(self, form, what=None):
        out = self.directory.parent / f"{self.directory.name}.{what}.{form}"
        if not out.exists():
            more = ["--what", what] if what else []
            sonde("export", self.directory, "--format", form, *more, "-o", out)
        return out

    def zones(self):
        """Calls and seconds by path, spans apart."""
        return {
            tuple(o["path"]): (o["count"], o["self_s"])
            for o in self.report["operations"]
            if o["kind"] == "zone"
        }


@pytest.fixture(scope="module")
def zones(tmp_path_factory):
    base = tmp_path_factory.mktemp("zones") / "run"
    run(base, workload("known_counts"), 2, 4, options=["--interval", "20ms"])
    return Exported(base)


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    base = tmp_path_factory.mktemp("python")
    (base / "burn.py").write_text(BURN)
    run(base / "run", sys.executable, base / "burn.py")
    return Exported(base / "run")


@pytest.fixture(scope="module")
def allocations(tmp_path_factory):
    base = tmp_path_factory.mktemp("allocations") / "run"
    run(base, workload("known_allocations"))
    return Exported(base)


def total_zones(exported):
    return sum(count for count, _ in exported.zones().values())


# ---- Perfetto --------------------------------------------------------------------


def test_perfetto_reads_every_zone_nested_as_it_was(zones):
    pb = readers.module("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    trace = pb.Trace()
    trace.ParseFromString(zones.file("perfetto").read_bytes())
    names, tracks, stacks, paths = {}, {}, collections.defaultdict(list), collections.Counter()
    edges = []
    for number, p in enumerate(trace.packet):
        sequence = p.trusted_packet_sequence_id
        for e in p.interned_data.event_names:
            names[sequence, e.iid] = e.name
        if p.HasField("track_descriptor"):
            tracks[p.track_descriptor.uuid] = p.track_descriptor
        if p.HasField("track_event") and p.track_event.type in (1, 2):
            e = p.track_event
            edges.append((p.timestamp, number, e.type, e.track_uuid, names.get((sequence, e.name_iid))))
    seconds = collections.Counter()
    for time, _, kind, track, name in sorted(edges):
        assert track in tracks  # described, before or after
        if kind == 1:
            stacks[track].append((name, time))
            paths[tuple(n for n, _ in stacks[track])] += 1
        else:
            path = tuple(n for n, _ in stacks[track])
            seconds[path] += time - stacks[track].pop()[1]
    assert not any(stacks.values())
    expected = zones.zones()
    assert dict(paths) == {path: count for path, (count, _) in expected.items()}
    for o in zones.report["operations"]:
        if o["kind"] == "zone":
            assert seconds[tuple(o["path"])] / 1e9 == pytest.approx(o["total_s"], rel=0.01, abs=2e-6)
    process = [t for t in tracks.values() if t.HasField("process")]
    assert [t.process.pid for t in process] == [zones.report["processes"][0]["pid"]]
    assert len([t for t in tracks.values() if t.HasField("thread")]) == 2


def test_perfetto_has_counters_and_steps(zones):
    pb = readers.module("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    trace = pb.Trace()
    trace.ParseFromString(zones.file("perfetto").read_bytes())
    counters = {
        p.track_descriptor.uuid: p.track_descriptor.name
        for p in trace.packet
        if p.HasField("track_descriptor") and p.track_descriptor.HasField("counter")
    }
    values = collections.Counter(
        counters[p.track_event.track_uuid]
        for p in trace.packet
        if p.HasField("track_event") and p.track_event.type == 4
    )
    for name, series in zones.report["monitors"].items():
        assert values[name] == len(series["points"])
    instants = [p.track_event.name for p in trace.packet if p.track_event.type == 3]
    assert instants.count("step") == 4


# ---- pprof ----------------------------------------------------------------------


def pprof(path, value):
    """Flat values by function, in the unit of the profile."""
    unit = ["-unit=B"] if value.endswith("space") else ["-unit=ns"] if value == "cpu" else []
    done = subprocess.run(
        [
            readers.go(), "tool", "pprof", "-top", "-nodecount=0", "-nodefraction=0",
            *unit, f"-sample_index={value}", path,
        ],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^ *([\d.]+)(\w*) +[\d.]+% +[\d.]+% +\S+ +[\d.]+% +(.+)$", done.stdout, re.M)
    total = re.search(r"% of ([\d.]+)\w* total", done.stdout)
    return {name: float(number) for number, _, name in rows}, float(total[1])


def test_pprof_reads_zones_with_the_reports_calls_and_times(zones):
    flat, total = pprof(zones.file("pprof", "zones"), "calls")
    calls = collections.Counter()
    for path, (count, _) in zones.zones().items():
        calls[path[-1]] += count
    assert {k: v for k, v in flat.items() if v} == calls
    assert total == total_zones(zones)
    raw = subprocess.run(
        [readers.go(), "tool", "pprof", "-raw", zones.file("pprof", "zones")],
        capture_output=True, text=True, timeout=60,
    ).stdout  # fmt: skip
    ns = sum(int(m[1]) for m in re.findall(r"^ +(\d+) +(\d+): [\d ]+$", raw, re.M))
    assert ns / 1e9 == pytest.approx(sum(s for _, s in zones.zones().values()), rel=1e-3)


def test_pprof_reads_python_stacks(python):
    flat, total = pprof(python.file("pprof", "python"), "cpu")
    functions = python.report["functions"]
    assert max(flat, key=flat.get) == "inner"
    own = sum(f["self_s"] for f in functions if f.get("language", "python") == "python")
    assert total > 0 and own > 0


def test_pprof_reads_native_stacks(python):
    flat, total = pprof(python.file("pprof", "stacks"), "samples")
    assert total == python.report["sampling"]["samples"]


def test_pprof_reads_allocation_sites(allocations):
    flat, total = pprof(allocations.file("pprof", "allocations"), "alloc_space")
    expected = sum(s["bytes"] for s in allocations.report["allocations"]["sites"])
    assert total == pytest.approx(expected, rel=1e-3)
    assert {"large", "plain", "again"} <= set(flat)


# ---- speedscope -------------------------------------------------------------------


def check_schema(document):
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(document, json.loads(readers.speedscope_schema().read_text()))


def test_speedscope_reads_zones_as_events_that_nest(zones):
    document = json.loads(zones.file("speedscope", "zones").read_text())
    check_schema(document)
    frames, paths = document["shared"]["frames"], collections.Counter()
    for profile in document["profiles"]:
        stack, at = [], profile["startValue"]
        for e in profile["events"]:
            assert e["at"] >= at
            at = e["at"]
            if e["type"] == "O":
                stack.append(e["frame"])
                paths[tuple(frames[f]["name"] for f in stack)] += 1
            else:
                assert stack.pop() == e["frame"]
        assert not stack and at <= profile["endValue"]
    assert paths == {path: count for path, (count, _) in zones.zones().items()}


def test_speedscope_reads_samples(python, allocations):
    for exported, what, name in (
        (python, "python", "inner"),
        (python, "stacks", None),
        (allocations, "allocations", "large"),
    ):
        document = json.loads(exported.file("speedscope", what).read_text())
        check_schema(document)
        for profile in document["profiles"]:
            assert len(profile["samples"]) == len(profile["weights"])
            assert sum(profile["weights"]) == profile["endValue"]
        names = {f["name"] for f in document["shared"]["frames"]}
        assert name is None or name in names
        if what == "stacks":
            assert document["profiles"][0]["endValue"] == exported.report["sampling"]["samples"]


def test_speedscopes_own_importer_takes_it(zones, tmp_path):
    path = zones.file("speedscope", "zones")
    page = readers.speedscope_page(path, tmp_path)
    assert f"<title>{zones.report['run']['id']} - speedscope</title>" in page
    listed = re.findall(r'<tr title="([^"]+)"', page)
    expected = [p["name"] for p in json.loads(path.read_text())["profiles"]]
    assert listed == expected and len(listed) == 2


# ---- Folded ----------------------------------------------------------------------


def test_folded_lines_of_every_kind_add_up(zones, python, allocations):
    def total(exported, what):
        lines = exported.file("folded", what).read_text().splitlines()
        return sum(int(line.rsplit(" ", 1)[1]) for line in lines)

    own = sum(s for _, s in zones.zones().values())
    assert total(zones, "zones") / 1e6 == pytest.approx(own, rel=0.01, abs=2e-5)
    assert total(python, "stacks") == python.report["sampling"]["samples"]
    assert total(python, "python") > 0
    expected = sum(s["bytes"] for s in allocations.report["allocations"]["sites"])
    assert total(allocations, "allocations") == pytest.approx(expected, rel=1e-3)


# ---- OpenTelemetry ------------------------------------------------------------------


def test_opentelemetry_reads_every_zone_as_a_span_of_its_parent(zones):
    pb = readers.module("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    form = readers.module("google.protobuf.json_format")
    text = zones.file("otlp", "zones").read_text()
    # OTLP/JSON has ids in hex where protobuf's JSON has base64.
    request = form.Parse(hex_to_base64(text), pb.ExportTraceServiceRequest())
    spans = [s for r in request.resource_spans for c in r.scope_spans for s in c.spans]
    assert len(spans) == total_zones(zones)
    by_id = {s.span_id: s for s in spans}
    assert len(by_id) == len(spans) and all(len(i) == 8 for i in by_id)
    assert len({s.trace_id for s in spans}) == 1 and len(spans[0].trace_id) == 16
    paths = collections.Counter()
    for s in spans:
        path, at = [s.name], s
        while at.parent_span_id:
            parent = by_id[at.parent_span_id]
            assert parent.start_time_unix_nano <= at.start_time_unix_nano
            assert parent.end_time_unix_nano >= at.end_time_unix_nano
            at = parent
            path.append(at.name)
        paths[tuple(reversed(path))] += 1
    assert paths == {path: count for path, (count, _) in zones.zones().items()}


def hex_to_base64(text):
    import base64

    def change(match):
        return f'"{match[1]}":"{base64.b64encode(bytes.fromhex(match[2])).decode()}"'

    return re.sub(r'"(traceId|spanId|parentSpanId)":"([0-9a-f]+)"', change, text)


def test_opentelemetry_reads_monitors_as_gauges(zones):
    pb = readers.module("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2")
    form = readers.module("google.protobuf.json_format")
    text = zones.file("otlp", "monitors").read_text()
    request = form.Parse(text, pb.ExportMetricsServiceRequest())
    metrics = [m for r in request.resource_metrics for c in r.scope_metrics for m in c.metrics]
    assert len(metrics) == len(zones.report["monitors"])
    points = sum(len(m.gauge.data_points) for m in metrics)
    assert points == sum(len(s["points"]) for s in zones.report["monitors"].values())


# ---- Prometheus ---------------------------------------------------------------------


def test_prometheus_reads_the_reports_numbers(zones):
    parser = readers.module("prometheus_client.parser")
    families = {
        f.name: f
        for f in parser.text_string_to_metric_families(zones.file("prometheus").read_text())
    }
    calls = {
        tuple(s.labels["path"].split("/")): s.value
        for s in families["sonde_operation_calls"].samples
    }
    assert calls == {path: count for path, (count, _) in zones.zones().items()}
    summary = zones.report["summary"]
    (events,) = families["sonde_events"].samples
    assert events.value == summary["events"]
    step = {s.labels.get("quantile", s.name[-5:]): s.value for s in families["sonde_step_seconds"].samples}
    assert step["count"] == summary["step_ms"]["count"]
    assert step["0.5"] * 1e3 == pytest.approx(summary["step_ms"]["p50"], rel=1e-3)
    phases = {s.labels["phase"]: s.value for s in families["sonde_phase_seconds"].samples}
    for p in zones.report["phases"]:
        assert phases.get(p["phase"], 0) == pytest.approx(p["total_s"], rel=1e-3, abs=1e-6)
    series = {s.labels["series"]: s.value for s in families["sonde_monitor_max"].samples}
    assert set(series) == set(zones.report["monitors"])
    for name, value in series.items():
        assert value == pytest.approx(zones.report["monitors"][name]["max"], rel=1e-4, abs=1e-6)


# ---- Tables -------------------------------------------------------------------------


def test_pandas_reads_the_tables(zones):
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(zones.file("csv", "zones"))
    lines = pandas.read_json(zones.file("jsonl", "zones"), lines=True, precise_float=True)
    assert len(frame) == len(lines) == total_zones(zones)
    assert frame["duration_ms"].sum() == pytest.approx(lines["duration_ms"].sum(), rel=1e-3)
    by_name = frame.groupby("name").size().to_dict()
    calls = collections.Counter()
    for path, (count, _) in zones.zones().items():
        calls[path[-1]] += count
    assert by_name == calls
    monitors = pandas.read_csv(zones.file("csv", "monitors"))
    assert set(monitors["name"]) == set(zones.report["monitors"])
    operations = pandas.read_csv(zones.file("csv"))
    assert operations["count"].sum() == total_zones(zones)


def test_chrome_has_monitors_as_counters(zones):
    events = json.loads(zones.file("chrome").read_text())["traceEvents"]
    assert sum(e["ph"] == "X" for e in events) == total_zones(zones)
    counted = collections.Counter(e["name"] for e in events if e["ph"] == "C" and e.get("cat") == "monitor")
    for name, series in zones.report["monitors"].items():
        assert counted[name] == len(series["points"])


# ---- Markdown ------------------------------------------------------------------------


def tables_of(text):
    """Tables by the heading before them, as rows of plain cells."""
    markdown = readers.module("markdown_it").MarkdownIt("commonmark").enable("table")
    found, heading, where = {}, None, None
    for token in markdown.parse(text):
        if token.type in ("heading_open", "tr_open"):
            where = token.type
            if where == "tr_open":
                found.setdefault(heading, []).append([])
        elif token.type == "inline":
            plain = "".join(
                c.content for c in token.children if c.type in ("text", "text_special")
            )
            if where == "heading_open":
                heading, where = plain, None
            elif where == "tr_open":
                found[heading][-1].append(plain.replace("\xa0", ""))
        elif token.type == "table_close":
            where = None
        assert not token.type.startswith("html")
    return found


def test_markdown_tables_hold_the_reports_operations(zones):
    text = sonde("report", zones.directory, "--format", "markdown", "--full").stdout
    assert zones.file("markdown").read_text().splitlines()[0] == text.splitlines()[0]
    rows = tables_of(text)["Operations"]
    assert {len(row) for row in rows} == {6}
    calls = collections.Counter()
    for row in rows[1:]:
        calls[row[0]] += int(row[1].replace(",", ""))
    expected = collections.Counter()
    for path, (count, _) in zones.zones().items():
        expected[path[-1]] += count
    assert calls == expected
    phases = tables_of(text)["Phases of the main thread"]
    assert {r[0] for r in phases[1:]} == {
        p["phase"] for p in zones.report["phases"] if p["total_s"] > 0
    }


# ---- Hostile names ---------------------------------------------------------------------


def test_names_that_mean_something_elsewhere_do_no_harm(tmp_path, zones):
    """Formats that hold text escape it; here, what the program's own name brings along."""
    name = tmp_path / 'a;b "c",<d>\\n=1+1'
    name.write_text("#!/bin/sh\nexec sleep 0.05\n")
    name.chmod(0o755)
    run(tmp_path / "run", name, options=["--tag", "k=\"v\\\n,"])
    done = Exported(tmp_path / "run")
    json.loads(done.file("chrome").read_text())
    json.loads(done.file("otlp", "zones").read_text())
    for rows in tables_of(done.file("markdown").read_text()).values():
        assert len({len(row) for row in rows}) == 1
    list(csv.reader(io.StringIO(done.file("csv", "monitors").read_text())))
    parser = readers.module("prometheus_client.parser")
    list(parser.text_string_to_metric_families(done.file("prometheus").read_text()))


# ---- Memory --------------------------------------------------------------------------------


def peak_kib(*arguments):
    """Most memory the command had; its own, not that of others before it."""
    pid = os.fork()
    if pid == 0:
        os.execve(SONDE, [SONDE, *map(str, arguments)], environment())
    _, status, usage = os.wait4(pid, 0)
    assert status == 0
    return usage.ru_maxrss


@pytest.fixture(scope="module")
def sizes(tmp_path_factory):
    base = tmp_path_factory.mktemp("sizes")
    for repeats in (10, 300):
        run(base / str(repeats), workload("known_counts"), 2, repeats)
    return base


@pytest.mark.parametrize(
    ("form", "what"),
    [("chrome", None), ("perfetto", None), ("speedscope", "zones"), ("csv", "zones")],
)
def test_thirty_times_the_events_take_no_more_memory(sizes, form, what):
    more = ["--what", what] if what else []
    few, many = (
        peak_kib("export", sizes / n, "--format", form, *more, "-q", "-o", sizes / f"{n}.{form}")
        for n in ("10", "300")
    )
    # 10,000 zones and 320,000: held in memory, they would take tens of megabytes.
    assert many < few + 4096
    assert (sizes / f"300.{form}").stat().st_size > 20 * (sizes / f"10.{form}").stat().st_size


# ---- Mistakes -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--format", "nonsense"], "one of chrome"),
        (["--format", "pprof", "--what", "monitors"], "one of zones, stacks"),
        (["--format", "chrome", "--what", "zones"], "leave --what out"),
        (["--format", "json", "--what", "zones"], "leave --what out"),
    ],
)
def test_mistakes_are_told_with_what_helps(zones, tmp_path, arguments, words):
    out = tmp_path / "x"
    done = sonde("export", zones.directory, *arguments, "-o", out, check=False)
    assert done.returncode == 2 and words in done.stderr and not out.exists()


def test_what_a_run_does_not_hold_is_said(zones, tmp_path):
    out = tmp_path / "x"
    done = sonde(
        "export", zones.directory, "--format", "pprof", "--what", "python", "-o", out, check=False
    )
    assert done.returncode == 2 and "no Python" in done.stderr and not out.exists()


def test_a_profile_is_gzipped_and_the_list_names_every_format(zones):
    assert gzip.decompress(zones.file("pprof", "zones").read_bytes())
    listed = sonde("export", "--list").stdout
    for name in "chrome perfetto speedscope pprof folded csv json otlp prometheus markdown".split():
        assert re.search(rf"^{name}\b", listed, re.M), name
