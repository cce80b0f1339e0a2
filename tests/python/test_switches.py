"""Fields of sonde.Config that need the helper process: each seen to make a difference."""

import os
import subprocess
import sys
import time

import pytest
from conftest import BUILD, environment, python

import sonde

needs_command = pytest.mark.skipif(
    not os.access(BUILD / "sonde", os.X_OK), reason="the sonde command is not built"
)
pytestmark = needs_command


def spin(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def session(tmp_path, seconds=0.4, **fields):
    fields = {"monitor_interval": 0.05, "generate_reports": False, **fields}
    with sonde.session(output=tmp_path / "run", **fields) as s:
        spin(seconds)
    return s.report()


def functions(report):
    return {line["function"] for line in report["lines"] or []}


def test_line_profiling(tmp_path):
    # On a crowded machine the helper may not come to look within a second, or not twice.
    for seconds in (1.5, 5, 15):
        report = session(tmp_path / str(seconds), seconds=seconds)
        # Its two lines together: how they share is the interpreter's affair.
        share = sum(x["share"] for x in report["lines"] or [] if x["function"] == "spin")
        if share > 0.3:
            break
    assert "spin" in functions(report)
    assert share > 0.3


@pytest.mark.parametrize(
    "off", [{"enable_line_profiling": False}, {"profile_level": "basic"}]
)
def test_line_profiling_off(tmp_path, off):
    assert functions(session(tmp_path, **off)) == set()


def test_carbon(tmp_path):
    report = session(tmp_path, track_carbon=True)
    assert report["energy"]["joules"] > 0 and report["energy"]["co2e_g"] > 0
    other = session(tmp_path / "off")
    assert other["energy"]["joules"] is None and other["energy"]["source"] == "off"


CASES = [
    ({"track_memory": False}, "rss"),
    ({"profile_cpu": False}, "cpu"),
    ({"track_io": False}, "disk_read"),
    ({"track_network": True}, "net_receive"),
]


@pytest.mark.parametrize("fields, metric", CASES, ids=[m for _, m in CASES])
def test_each_monitor(tmp_path, fields, metric):
    (value,) = fields.values()
    for seconds in (0.6, 4, 12):  # rates need two looks of the helper
        monitors = session(tmp_path / str(seconds), seconds=seconds, **fields)["monitors"]
        there = {name.split("/")[0] for name in monitors}
        if (metric in there) == value:
            break
    assert (metric in there) == value
    assert "context_switches" in there or fields.get("profile_cpu") is False


@pytest.mark.parametrize(
    "field", ["monitor_performance", "enable_performance_monitoring"]
)
def test_no_monitor_at_all(tmp_path, field):
    report = session(tmp_path, seconds=0.05, **{field: False})
    assert not report["monitors"] and not report["counters"]


def test_gpu_utilization(tmp_path, monkeypatch):
    library = BUILD / "progs" / "fake_nvml.so"
    if not library.exists():
        pytest.skip("the fake NVML is not built")
    monkeypatch.setenv("SONDE_NVML", str(library))
    monkeypatch.setenv("FAKE_NVML", "cards=1 watts=100")
    monitors = session(tmp_path / "on", seconds=0.3)["monitors"]
    assert monitors["gpu/gpu0"]["avg"] == 40
    for field in ("track_gpu_utilization", "track_gpu", "enable_gpu_profiling"):
        monitors = session(tmp_path / field, seconds=0.1, **{field: False})["monitors"]
        assert not [name for name in monitors if name.startswith("gpu/")]


# ---- the helper process ----

CHILDREN = """
import os, sys, time, sonde
with sonde.session(output=sys.argv[1]) as s:
    helper = s._companion._process
    assert helper is not None
    try:
        os.wait()
        print("there was a child")
    except ChildProcessError:
        print("no child", flush=True)  # or the fork would say it again
    pid = os.fork()
    if pid == 0:
        sys.exit(0)
    assert os.wait()[0] == pid
    time.sleep(0.1)
print(len(s.report()["processes"]))
"""


def test_the_helper_is_no_child_of_the_program(tmp_path):
    said = python("-c", CHILDREN, tmp_path / "run").stdout.split("\n")
    assert said[0] == "no child"
    assert said[1] in ("1", "2")  # the program and its child, never the helper


def helpers(directory):
    """Processes `sonde attach --session DIRECTORY`."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if b"--session" in words and os.fsencode(directory) in words:
            found.append(int(entry))
    return found


KILLED = """
import sys, sonde
s = sonde.session(output=sys.argv[1]).start()
print("started", s._companion.notes, flush=True)
sys.stdin.read()
"""


def test_the_helper_ends_with_a_program_that_is_killed(tmp_path):
    target = tmp_path / "run"
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(target)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    # Only then: the helper forks, and a look at /proc while it does may see neither half.
    said = process.stdout.readline()
    found = helpers(target)
    process.kill()
    error = process.communicate()[1]
    assert len(found) == 1, (said, error, sorted(p.name for p in target.glob("*")))
    end = time.monotonic() + 60
    while helpers(target) and time.monotonic() < end:
        time.sleep(0.02)
    assert not helpers(target)


def test_a_helper_that_cannot_start_says_why(tmp_path, monkeypatch):
    from sonde import _command

    for command, reason in (
        ("/bin/false", "/bin/false ended with status 1"),
        ("/nowhere/sonde", "No such file"),
    ):
        monkeypatch.setattr(_command, "find", lambda command=command: command)
        with sonde.session(output=tmp_path / command[1:], generate_reports=False) as s:
            pass
        (note,) = s._companion.notes
        assert note.startswith("no helper process") and reason in note


def test_without_the_command_a_session_records_all_the_same(tmp_path, monkeypatch):
    from sonde import _command

    monkeypatch.setattr(_command, "find", lambda: None)
    with sonde.session(output=tmp_path / "run", generate_reports=False) as s:
        with sonde.zone("z"):
            pass
    monkeypatch.undo()
    assert s.report().operation("z")["count"] == 1


def test_mixed_precision_of_training(tmp_path):
    torch = pytest.importorskip("torch")
    seen = []

    class Net(torch.nn.Linear):
        def forward(self, x):
            y = super().forward(x)
            seen.append(y.dtype)
            return y

    data = [(torch.randn(4, 3), torch.randn(4, 1))]
    for on in (False, True):
        with sonde.session(
            output=tmp_path / str(on), mixed_precision=on, estimate_flops=False
        ):
            sonde.profile_training(Net(3, 1), data, 1)
    assert seen == [torch.float32, torch.bfloat16]


def test_flops_of_training(tmp_path):
    torch = pytest.importorskip("torch")
    data = [(torch.randn(4, 3), torch.randn(4, 5))]
    found = []
    for on in (False, True):
        with sonde.session(output=tmp_path / str(on), estimate_flops=on):
            found.append(sonde.profile_training(torch.nn.Linear(3, 5), data, 1))
    assert found[0].flops is None and found[0].flops_per_s is None
    # 4·3·5 multiplications and additions, and again for the weights' gradient.
    assert found[1].flops >= 2 * 2 * 4 * 3 * 5 and found[1].flops_per_s > 0


# ---- GPU use of operations ----


class FakeCuda:
    """As much of torch.cuda as an operation looks at."""

    is_available = is_initialized = staticmethod(lambda: True)
    current_device = staticmethod(lambda: 0)
    memory_allocated = memory_reserved = staticmethod(lambda: 1 << 20)
    max_memory_allocated = staticmethod(lambda: 3 << 20)


OPERATION = """
import sys, time, types
sys.path.insert(0, sys.argv[1])
from test_switches import FakeCuda
sys.modules["torch"] = types.SimpleNamespace(cuda=FakeCuda)
import sonde
with sonde.operation("long") as long: time.sleep(0.2)
with sonde.operation("short") as short: pass
print(long.gpu_util_percent, short.gpu_util_percent, long.to_dict()["gpu_util_percent"])
"""


@pytest.mark.parametrize("cards, expected", [("", "40.0"), ("1", "50.0"), ("MIG-x", "None")])
def test_an_operation_has_the_use_of_its_card(cards, expected):
    library = BUILD / "progs" / "fake_nvml.so"
    if not library.exists():
        pytest.skip("the fake NVML is not built")
    env = environment(SONDE_NVML=library, FAKE_NVML="cards=2 watts=100")
    env.pop("CUDA_VISIBLE_DEVICES", None)
    if cards:
        env["CUDA_VISIBLE_DEVICES"] = cards
    said = python("-c", OPERATION, os.path.dirname(__file__), env=env).stdout.split()
    assert said == [expected, "None", expected]
