"""Other tools' profiles become runs; totals are those the other tool tells."""

import cProfile
import gzip
import json
import marshal
import pathlib
import pstats
import subprocess
import sys

import pytest
from sonde_test import environment, sonde

STEPS = 20


def imported(tmp_path, file, *options):
    """The report of a run made of the file."""
    place = tmp_path / f"run-{file.name}"
    sonde("import", "-q", "-o", place, *options, file)
    return json.loads(sonde("report", place, "--json").stdout)


def operations(answer):
    return {tuple(o["path"]): o for o in answer["operations"]}


def phase_of(answer, name):
    return next(p for p in answer["phases"] if p["phase"] == name)


def phase(answer, name):
    return next((p["total_s"] for p in answer["phases"] if p["phase"] == name), 0.0)


def kineto():
    """A CUDA training loop as Kineto writes it: 20 steps of 10 ms. The backward pass runs on
    a thread of the engine while the main thread says nothing."""
    events, end = [], 0.0

    def zone(name, cat, ts, dur, pid=4242, tid=4242):
        events.append({"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid,
                       "ts": ts, "dur": dur, "args": {"External id": 1}})

    for step in range(STEPS):
        t = 1000.0 + step * 10000
        zone("enumerate(DataLoader)#_Iter.__next__", "user_annotation", t + 10, 2000)
        zone("aten::stack", "cpu_op", t + 100, 500)  # inside: still the loader's time
        zone("aten::linear", "cpu_op", t + 2100, 1500)
        zone("aten::addmm", "cpu_op", t + 2200, 1000)
        zone("autograd::engine::evaluate_function: AddmmBackward0", "cpu_op", t + 4000,
             2500, tid=5000)
        zone("Optimizer.step#Adam.step", "user_annotation", t + 7000, 1000)
        zone("aten::add_", "cpu_op", t + 7100, 500)
        zone("aten::item", "cpu_op", t + 8100, 800)
        zone("ampere_sgemm", "kernel", t + 2300, 1200, pid=0, tid=7)
        zone("Memcpy HtoD (Pageable -> Device)", "gpu_memcpy", t + 3600, 100, pid=0, tid=7)
        zone(f"ProfilerStep#{step}", "user_annotation", t, 10000)
        end = t + 10000
    events.append({"ph": "M", "name": "process_name", "pid": 4242, "tid": 0,
                   "args": {"name": "python"}})
    events.append({"ph": "s", "id": 1, "cat": "ac2g", "name": "ac2g", "pid": 4242,
                   "tid": 4242, "ts": end})
    return {"schemaVersion": 1, "baseTimeNanoseconds": 1700000000000000000,
            "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}],
            "traceEvents": events}


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_phases_steps_and_kernels_of_a_kineto_trace(tmp_path, packed):
    text = json.dumps(kineto()).encode()
    file = tmp_path / ("t.pt.trace.json.gz" if packed else "t.pt.trace.json")
    file.write_bytes(gzip.compress(text) if packed else text)
    answer = imported(tmp_path, file)
    assert answer["summary"]["step_ms"]["count"] == STEPS
    assert answer["summary"]["step_ms"]["mean"] == pytest.approx(10, rel=1e-6)
    per_step = {
        "data_loading": 2.0, "forward": 1.5, "backward": 2.5, "optimizer": 1.0,
        "sync": 0.8,
    }
    for name, ms in per_step.items():
        assert phase(answer, name) == pytest.approx(ms * STEPS / 1000, rel=1e-6), name
    assert sum(p["share"] for p in answer["phases"]) == pytest.approx(1, abs=1e-6)
    kernel = operations(answer)[("ampere_sgemm",)]
    assert kernel["count"] == STEPS
    assert kernel["total_s"] == pytest.approx(STEPS * 1.2e-3, rel=1e-6)
    assert {p["role"] for p in answer["processes"]} == {"main", "gpu 0"}
    assert answer["run"]["started"].startswith("2023-11-14T22:13:20")


H200 = pathlib.Path(__file__).parent / "data" / "h200-adamw.pt.trace.json.gz"


@pytest.fixture(scope="module")
def h200(tmp_path_factory):
    """Four steps torch 2.11 traced on an H200 (two loader workers, AdamW, annotations of the
    program's own), thinned to what carries time: the file, and the report of it."""
    place = tmp_path_factory.mktemp("h200")
    return json.loads(gzip.decompress(H200.read_bytes()))["traceEvents"], imported(place, H200)


def annotated(events, *names):
    """What torch's own table says: the sum of a name's durations, in seconds."""
    return sum(e["dur"] for e in events if e["ph"] == "X" and e["cat"] == "user_annotation"
               and e["name"].startswith(names)) / 1e6


def device(events):
    return [e for e in events if e["ph"] == "X"
            and e["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")]


def test_steps_and_phases_of_a_real_gpu_trace(h200):
    events, answer = h200
    steps = annotated(events, "ProfilerStep#")
    summary = answer["summary"]
    assert summary["step_ms"]["count"] == 4
    assert summary["step_ms"]["mean"] == pytest.approx(steps / 4 * 1e3, rel=0.01)
    # Nothing of the profiler's own (its window ended 136 ms later) is part of the run.
    assert answer["run"]["duration_s"] == pytest.approx(steps, rel=0.01)
    for name, annotations in {
        "data_loading": ("enumerate(DataLoader)",),
        "forward": ("## forward ##",),
        "backward": ("## backward ##",),
        "optimizer": ("Optimizer.",),
    }.items():
        share = annotated(events, *annotations) / steps
        found = next(p["share"] for p in answer["phases"] if p["phase"] == name)
        assert found == pytest.approx(share, abs=0.01), name


def test_kernels_of_a_real_gpu_trace(h200):
    events, answer = h200
    kernels = device(events)
    total = sum(e["dur"] for e in kernels) / 1e6
    shown = [o for o in answer["operations"]
             if o["category"] in ("kernel", "gpu_memcpy", "gpu_memset")]
    assert sum(o["count"] for o in shown) == len(kernels)
    assert sum(o["total_s"] for o in shown) == pytest.approx(total, rel=1e-6)
    by_phase = {p["phase"]: p["device_s"] for p in answer["phases"]}
    assert sum(filter(None, by_phase.values())) == pytest.approx(total, rel=1e-6)
    assert answer["summary"]["gpu_busy_share"] == pytest.approx(
        total / answer["run"]["duration_s"], rel=0.01)  # one stream: nothing side by side
    assert {p["role"] for p in answer["processes"]} == {"main", "gpu 0"}
    assert answer["hardware"]["gpus"] == ["NVIDIA H200"]


def test_a_kernel_is_its_launcher_s_phase(h200):
    """Whose kernel it is comes from the launch it is numbered after, not from when it ran."""
    events, answer = h200
    engine = next(e["tid"] for e in events if e["name"].startswith("autograd::engine"))
    by_engine = {e["args"]["correlation"] for e in events if e["ph"] == "X"
                 and e["cat"] in ("cuda_runtime", "cuda_driver") and e["tid"] == engine}
    truth = sum(e["dur"] for e in device(events)
                if e["args"]["correlation"] in by_engine) / 1e6
    # The loss's first gradient is filled by the main thread, inside the same annotation.
    assert phase_of(answer, "backward")["device_s"] == pytest.approx(truth, rel=0.01)


def launching(events):
    """Seconds in outermost operators that launched something, waits and copies apart."""
    launched = {e["args"]["correlation"] for e in device(events)}
    zones = [e for e in events if e["ph"] == "X"]
    threads, total = {e["tid"] for e in zones if e["cat"] == "cpu_op"}, 0.0
    for tid in threads:
        mine = sorted((e for e in zones if e["tid"] == tid), key=lambda e: (e["ts"], -e["dur"]))
        calls = [e for e in mine if e["cat"] in ("cuda_runtime", "cuda_driver")]
        until = 0.0
        for op in (e for e in mine if e["cat"] == "cpu_op"):
            end = op["ts"] + op["dur"]
            if op["ts"] < until:
                continue  # inside another
            until = end
            inside = [c for c in calls if op["ts"] <= c["ts"] < end]
            if any(c["args"].get("correlation") in launched for c in inside):
                waits = [c for c in inside if "Synchronize" in c["name"] or "Memcpy" in c["name"]]
                total += op["dur"] - sum(c["dur"] for c in waits)
    return total / 1e6


def test_a_card_that_waits_for_launches_is_told_with_its_cause(h200):
    """694 launches a step, the card busy 12 % of it: that is no idle symptom without cause."""
    events, answer = h200
    first = answer["bottlenecks"][0]
    assert first["id"] == "launch_bound" and first["severity"] in ("high", "critical")
    (share,) = [e for e in first["evidence"] if e["metric"] == "launch_share"]
    steps = annotated(events, "ProfilerStep#")
    assert share["value"] == pytest.approx(launching(events) / steps, rel=0.01)
    (symptom,) = [b for b in answer["bottlenecks"] if b["id"] == "gpu_underutilized"]
    assert "launch_bound" in symptom["because"]


def test_a_busy_card_is_launched_for_in_time(tmp_path):
    """The same launches with longer kernels: nobody waits for the host."""
    trace = json.loads(gzip.decompress(H200.read_bytes()))
    kernels = sorted(device(trace["traceEvents"]), key=lambda e: e["ts"])
    until = 0.0
    for e in kernels:  # one stream: one after the other, 7.5 × as long
        e["ts"], e["dur"] = max(e["ts"], until), 7.5 * e["dur"]
        until = e["ts"] + e["dur"]
    file = tmp_path / "busy.pt.trace.json"
    file.write_text(json.dumps(trace))
    answer = imported(tmp_path, file)
    assert answer["summary"]["gpu_busy_share"] > 0.8
    assert not {b["id"] for b in answer["bottlenecks"]} & {"launch_bound", "gpu_underutilized"}


def test_our_own_export_comes_back_the_same(tmp_path):
    """chrome export → import: every path with the same calls and time."""
    place = tmp_path / "run"
    sonde("demo", "-q", "--steps", 60, "-o", place)
    report = json.loads(sonde("report", place, "--json").stdout)
    there = operations(report)
    sonde("export", place, "--format", "chrome", "-o", tmp_path / "out.json")
    answer = imported(tmp_path, tmp_path / "out.json")
    back = operations(answer)
    for name in ("data_loading", "forward", "backward"):
        assert phase(answer, name) == pytest.approx(phase(report, name), rel=1e-3), name
    zones = {path: o for path, o in there.items() if o["kind"] == "zone"}
    assert len(zones) > 10
    for path, o in zones.items():
        assert back[path]["count"] == o["count"], path
        # Chrome's microseconds are rounded to a nanosecond, at both ends of each call.
        assert back[path]["total_s"] == pytest.approx(
            o["total_s"], rel=1e-4, abs=o["count"] * 1e-8
        )


def busy(n):
    return sum(i * i for i in range(n))


def test_cprofile_tells_calls_and_own_time(tmp_path):
    profile = cProfile.Profile()
    profile.enable()
    for _ in range(7):
        busy(20000)
    profile.disable()
    file = tmp_path / "x.prof"
    profile.dump_stats(file)
    answer = imported(tmp_path, file)
    truth = pstats.Stats(str(file)).stats
    total = sum(v[2] for v in truth.values())
    assert answer["run"]["duration_s"] == pytest.approx(total, rel=1e-3, abs=1e-6)
    shown = {(o["name"], o["line"]): o for o in answer["operations"]}
    for (path, line, name), (_, calls, own, cumulative, _) in truth.items():
        o = shown[(name, line if path != "~" else None)]
        assert o["count"] == calls
        assert o["total_s"] == pytest.approx(own, abs=2e-9)
        assert o["custom"]["cumulative_s"]["last"] == pytest.approx(cumulative)


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_every_version_of_marshal(tmp_path, version):
    stats = {("a.py", 3, "f"): (2, 2, 0.25, 0.5, {}),
             ("ü.py", 4, "g"): (1, 70000000000, 0.25, 0.25,
                                {("a.py", 3, "f"): (1, 1, 0.25, 0.25)})}
    file = tmp_path / "x.prof"
    file.write_bytes(marshal.dumps(stats, version))
    if version < 2:  # numbers as text: nobody writes that since Python 2.5
        assert sonde("import", file, cwd=tmp_path, check=False).returncode == 2
        return
    answer = imported(tmp_path, file)
    assert {o["name"]: o["count"] for o in answer["operations"]} == {
        "f": 2, "g": 70000000000,
    }


def test_folded_stacks_are_a_tree_of_times(tmp_path):
    file = tmp_path / "x.folded"
    file.write_text("main;train;forward 30\nmain;train 10\nmain;load 60\n")
    answer = imported(tmp_path, file, "--rate", 50)
    paths = operations(answer)
    assert paths[("main",)]["total_s"] == pytest.approx(2.0)
    assert paths[("main", "train")]["self_s"] == pytest.approx(0.2)
    assert paths[("main", "train", "forward")]["total_s"] == pytest.approx(0.6)
    assert answer["run"]["duration_s"] == pytest.approx(2.0)


def test_b_and_e_marks_and_counters(tmp_path):
    file = tmp_path / "x.json"
    file.write_text(json.dumps([
        {"ph": "B", "name": "outer", "pid": 7, "tid": 7, "ts": 100},
        {"ph": "B", "name": "inner", "pid": 7, "tid": 7, "ts": 150},
        {"ph": "E", "pid": 7, "tid": 7, "ts": 250},
        {"ph": "C", "name": "memory", "pid": 7, "tid": 7, "ts": 260, "args": {"mb": 12.5}},
        {"ph": "E", "pid": 7, "tid": 7, "ts": 300},
    ]))
    answer = imported(tmp_path, file)
    assert operations(answer)[("outer",)]["total_s"] == pytest.approx(200e-6)
    assert operations(answer)[("outer", "inner")]["total_s"] == pytest.approx(100e-6)


HOSTILE = {
    "empty": b"",
    "text": b"hello world\n",
    "object": b'{"a": 1}',
    "no_events": b'{"traceEvents": []}',
    "binary": bytes(range(256)) * 10,
    "bomb": gzip.compress(b"[" * 1000000),
    "pickle": b"\x80\x04K\x01.",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_profile_is_refused_and_leaves_nothing(tmp_path, name):
    (tmp_path / name).write_bytes(HOSTILE[name])
    done = sonde("import", name, cwd=tmp_path, check=False)
    assert done.returncode == 2 and "cannot import" in done.stderr
    runs = tmp_path / ".sonde" / "runs"
    assert not runs.exists() or not list(runs.iterdir())


def test_names_cannot_leave_the_directory_or_reach_the_terminal(tmp_path):
    events = [{"ph": "X", "name": "\x1b[2J../../x", "pid": "../../etc", "tid": "/",
               "ts": 1, "dur": 2}]
    (tmp_path / "x.json").write_text(json.dumps(events))
    sonde("import", "-q", "-o", tmp_path / "run", "x.json", cwd=tmp_path)
    assert "\x1b[2J" not in sonde("report", tmp_path / "run").stdout
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run", "x.json"]


TORCH = """
import json, sys, torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters())
data = torch.utils.data.TensorDataset(torch.randn(512, 64), torch.randint(0, 10, (512,)))
with profile(activities=[ProfilerActivity.CPU],
             schedule=schedule(wait=1, warmup=1, active=8, repeat=1),
             on_trace_ready=lambda p: p.export_chrome_trace("trace.json")) as prof:
    for x, y in torch.utils.data.DataLoader(data, batch_size=32):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad(); loss.backward(); optimizer.step(); prof.step()
truth = {}
for event in prof.events():
    entry = truth.setdefault(event.name.split("#")[0].rstrip("*"), [0, 0])
    entry[0] += 1
    entry[1] += event.time_range.elapsed_us()
json.dump(truth, open("truth.json", "w"))
"""


def python_with_torch():
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", "import torch"], capture_output=True,
                          env=environment()).returncode == 0:
            return python
    return None


def test_a_real_torch_trace_says_what_torch_says(tmp_path):
    python = python_with_torch()
    if not python:
        pytest.skip("no torch here (apt-get install python3-torch)")
    subprocess.run([python, "-c", TORCH], cwd=tmp_path, check=True, env=environment(),
                   timeout=120)
    answer = imported(tmp_path, tmp_path / "trace.json")
    truth = json.loads((tmp_path / "truth.json").read_text())
    assert answer["summary"]["step_ms"]["count"] == truth["ProfilerStep"][0] == 8
    sums = {}
    for o in answer["operations"]:
        entry = sums.setdefault(o["name"].split("#")[0], [0, 0])
        entry[0] += o["count"]
        entry[1] += o["total_s"] * 1e6
    for name, (count, us) in truth.items():
        assert sums[name][0] == count, name
        assert sums[name][1] == pytest.approx(us, rel=0.01, abs=count), name
    loader = truth["enumerate(DataLoader)"][1]
    assert phase(answer, "data_loading") * 1e6 == pytest.approx(loader, rel=0.01)
