"""Device time by phase where there is no card: libcuda played by tests/system/libs/fake_cuda.c.

The fake device works while the host does: its time at a phase is the host's."""

import json
import re
import subprocess

import pytest
from sonde_test import BUILD, environment, program, run

PYTHON = "/usr/bin/python3"


def has_torch():
    found = list((BUILD / "python" / "sonde").glob("_sonde.*.so"))
    done = subprocess.run([PYTHON, "-c", "import torch"], capture_output=True)
    return bool(found) and done.returncode == 0


pytestmark = pytest.mark.skipif(
    not has_torch(), reason="no Python package, or no torch to watch"
)

TRAIN = """
import ctypes, json, sys, time
ctypes.CDLL("libcuda.so.1")
import torch, torch.nn as nn
class Net(nn.Linear):
    def forward(self, x):
        time.sleep(0.005)
        return super().forward(x)
net = Net(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
spent = 0
def step():
    global spent
    opt.zero_grad()
    start = time.perf_counter()
    out = net(torch.ones(2, 4))
    spent += time.perf_counter() - start
    out.sum().backward()
    opt.step()
"""

RUN = (
    TRAIN
    + """
cuda = sys.modules["_sonde_layer._torch.cuda"]
cuda.cuda_came(lambda device: 0)  # as torch would tell
for _ in range(40): step()
print(json.dumps(spent))
cuda._sonde.device_flush()
"""
)

SESSIONS = (
    TRAIN
    + """
import sonde
from sonde.integrations.torch import watch
answers = []
for number, on in enumerate([True, False, True]):
    with sonde.session(output=f"{sys.argv[1]}/{number}", track_cuda_events=on) as session:
        watch()
        from sonde._torch import cuda
        if number == 0: cuda.cuda_came(lambda device: 0)
        for _ in range(40): step()
        cuda._sonde.device_flush()
    phases = session.report().phases
    answers.append({p["phase"]: p["device_s"] for p in phases if p["phase"] == "forward"})
print(json.dumps(answers))
"""
)

LONG = """
import ctypes, sys
driver = ctypes.CDLL("libcuda.so.1")
work = driver.fake_cuda_work
work.argtypes = [ctypes.c_double]
work(1.0)
import torch, torch.nn as nn
class Net(nn.Linear):
    def forward(self, x):
        work(5.0 if now % 4 == 3 else 1.0)  # every fourth step is another one
        return super().forward(x)
class Optimizer(torch.optim.SGD):
    @torch.no_grad()
    def step(self):
        work(3.0)
net = Net(4, 1)
opt = Optimizer(net.parameters(), lr=0.1)
cuda = sys.modules["_sonde_layer._torch.cuda"]
cuda.cuda_came(lambda device: 0)
for now in range(6000):
    net(torch.ones(2, 4)).sum().backward()
    if now % 4 == 3:
        opt.step()
cuda._sonde.device_flush()
"""


def driver(tmp_path):
    (tmp_path / "libcuda.so.1").symlink_to(program("fake_cuda.so"))
    return environment(LD_LIBRARY_PATH=tmp_path, OMP_NUM_THREADS=1)


def test_each_phase_has_the_devices_time(tmp_path):
    done = run(tmp_path / "run", PYTHON, "-c", RUN, env=driver(tmp_path))
    truth = json.loads(done.stdout)
    report = done.report()
    phases = {p["phase"]: p for p in report["phases"]}
    assert truth > 0.2
    assert " calls (1 of" not in json.dumps(report["provenance"])  # a short run: all
    assert phases["forward"]["device_s"] == pytest.approx(truth, rel=0.05, abs=0.02)
    assert phases["backward"]["device_s"] > 0
    assert phases["optimizer"]["device_s"] > 0
    assert not phases["model_creation"]["device_s"]  # CUDA was not there yet


def test_a_session_may_switch_it_off(tmp_path):
    done = subprocess.run(
        [PYTHON, "-c", SESSIONS, tmp_path],
        env={**driver(tmp_path), "PYTHONPATH": str(BUILD / "python")},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    on, off, again = json.loads(done.stdout.splitlines()[-1])
    assert on["forward"] >= 0.19 and again["forward"] >= 0.19
    assert off["forward"] is None


def test_in_a_long_run_some_calls_stand_for_all(tmp_path):
    """Gradients are gathered over four steps: a fixed turn would see one of them alone."""
    done = run(tmp_path / "run", PYTHON, "-c", LONG, env=driver(tmp_path))
    report = done.report()
    phases = {p["phase"]: p for p in report["phases"]}
    assert phases["forward"]["device_s"] == pytest.approx(12.0, rel=0.3)
    assert phases["optimizer"]["device_s"] == pytest.approx(4.5, rel=0.05)
    said = next(p for p in report["provenance"] if "device_s" in json.dumps(p))
    timed, calls = map(int, re.search(r"on (\d+) of (\d+) calls", said["method"]).groups())
    assert calls == 6000 * 2 + 1500
    assert 3 * 200 <= timed < calls / 2
