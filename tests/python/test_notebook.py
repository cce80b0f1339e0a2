# timeout: 200
"""%%sonde in a real Jupyter kernel."""

import contextlib
import json
import os
import queue
import subprocess
import sys
import time

import pytest
from conftest import PACKAGE, SONDE, environment

jupyter_client = pytest.importorskip("jupyter_client", reason="no jupyter_client here")
pytest.importorskip("ipykernel", reason="no ipykernel here")
from jupyter_client.kernelspec import KernelSpecManager  # noqa: E402


@contextlib.contextmanager
def a_kernel(words, folder, env):
    """A kernel that these words start, as Jupyter starts it: by a kernel.json."""
    spec = folder / "kernels" / "tested"
    spec.mkdir(parents=True)
    argv = [*words, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    about = {"argv": argv, "display_name": "tested", "language": "python"}
    (spec / "kernel.json").write_text(json.dumps(about))
    specs = KernelSpecManager(kernel_dirs=[str(spec.parent)], ensure_native_kernel=False)
    manager = jupyter_client.KernelManager(
        kernel_name="tested", kernel_spec_manager=specs
    )
    manager.start_kernel(cwd=str(folder), env=env)
    client = manager.client()
    try:
        client.start_channels()
        client.wait_for_ready(timeout=180)
        yield manager, client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


@pytest.fixture
def kernel(tmp_path):
    with a_kernel([sys.executable], tmp_path, environment(HOME=str(tmp_path))) as both:
        yield both


def run_cell(client, code, on_started=None):
    """Everything the cell showed: text, HTML, errors."""
    message = client.execute(code)
    shown, begun = [], False
    end = time.monotonic() + 180
    while time.monotonic() < end:
        try:
            answer = client.get_iopub_msg(timeout=1)
        except queue.Empty:
            continue
        if answer["parent_header"].get("msg_id") != message:
            continue
        content = answer["content"]
        shown.append(content.get("text", ""))
        shown.append(str(content.get("data", {}).get("text/html", "")))
        shown.append(content.get("ename", ""))
        shown.append(content.get("evalue", ""))
        if on_started and not begun and "started" in content.get("text", ""):
            begun = True
            on_started()
        if answer["msg_type"] == "status" and content["execution_state"] == "idle":
            return "\n".join(filter(None, shown))
    raise AssertionError("the kernel did not answer")


def run_after_error(client, code):
    """A kernel leaves out cells that reach it while it still ends one that failed."""
    for _ in range(50):
        shown = run_cell(client, code)
        if shown:
            return shown
        time.sleep(0.2)
    return ""


def test_a_cell_is_profiled_and_shown(kernel):
    _, client = kernel
    assert "rror" not in run_cell(client, "%load_ext sonde")
    shown = run_cell(
        client,
        "%%sonde\nimport sonde, time\nwith sonde.zone('load', phase='data_loading'):\n"
        "    time.sleep(0.05)\nx = 3",
    )
    assert "<table>" in shown and "load" in shown and "data_loading" in shown
    assert "sonde run" in shown  # what a running kernel cannot show
    assert "3" in run_cell(client, "print(x)")  # the cell ran in the user's namespace
    shown = run_cell(client, "%%sonde\n1 / 0")
    assert "division by zero" in shown and "<table>" in shown
    assert not os.path.exists("profiles")


def test_an_interrupted_cell_keeps_its_report(kernel):
    manager, client = kernel
    run_cell(client, "%load_ext sonde")
    code = (
        "%%sonde\nimport sonde, time\nwith sonde.zone('interrupted'):\n"
        "    print('started', flush=True)\n    time.sleep(60)"
    )
    shown = run_cell(client, code, on_started=manager.interrupt_kernel)
    assert "<table>" in shown and "interrupted" in shown


# ---- a kernel that was started under `sonde run` ----


@pytest.fixture
def kernel_of_a_run(tmp_path):
    directory = tmp_path / "run"
    words = [str(SONDE), "run", "-q", "-o", str(directory), "--", sys.executable]
    env = environment(
        HOME=str(tmp_path), SONDE_PYTHON_LAYER=PACKAGE / "sonde" / "_site", PYTHONPATH=""
    )
    with a_kernel(words, tmp_path, env) as (manager, client):
        yield manager, client, directory


TRAINING = """
import time, torch, torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(torch.randn(24, 4), torch.randn(24, 1))
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in DataLoader(data, 4):
    opt.zero_grad(); nn.functional.mse_loss(net(x), y).backward(); opt.step()
"""


def test_a_kernel_under_sonde_run_has_phases_and_steps(kernel_of_a_run):
    pytest.importorskip("torch")
    if hasattr(sys, "gettotalrefcount"):
        pytest.skip("no torch layer in a debug interpreter")
    manager, client, directory = kernel_of_a_run
    assert "rror" not in run_cell(client, TRAINING)
    endless = "import time\nprint('started', flush=True)\nwhile True: time.sleep(0.01)"
    shown = run_cell(client, endless, on_started=manager.interrupt_kernel)
    assert "KeyboardInterrupt" in shown
    assert "9" in run_after_error(client, "print(3 * 3)")  # after the interrupt
    client.shutdown()
    end = time.monotonic() + 180
    while manager.is_alive() and time.monotonic() < end:
        time.sleep(0.1)
    assert not manager.is_alive()
    done = subprocess.run(
        [str(SONDE), "report", str(directory), "--json"],
        capture_output=True,
        text=True,
        env=environment(),
    )
    report = json.loads(done.stdout)
    assert report["run"]["exit"] == {**report["run"]["exit"], "code": 0, "cause": "ok"}
    counts = {p["phase"]: p["count"] for p in report["phases"] if p["count"]}
    assert counts["forward"] >= 6 and counts["backward"] == 6
    assert counts["data_loading"] >= 6 and counts["optimizer"] >= 6
    assert report["summary"]["step_ms"]["count"] == 6
    assert report["summary"]["optimizer_steps"] == 6
    assert report["summary"]["lost"] == 0


def status_of(client, code):
    """The kernel's reply, which tells "Run All" whether to go on, and what was shown."""
    reply = client.execute_interactive(
        code, timeout=120, output_hook=(shown := []).append, allow_stdin=False
    )
    text = "\n".join(str(m["content"]) for m in shown)
    return reply["content"]["status"], text


def test_a_profiled_cell_fails_awaits_and_runs_as_a_plain_one(kernel):
    _, client = kernel
    assert status_of(client, "%load_ext sonde")[0] == "ok"
    status, text = status_of(client, "%%sonde\nx = 1\n1 / 0")
    assert status == "error" and text.count("ename") == 1 and "calls" in text
    time.sleep(0.5)  # a kernel leaves out what it is sent while a failed cell ends
    status, text = status_of(
        client, "%%sonde\nimport asyncio\nawait asyncio.sleep(0.01)\ny = 2\nx + y"
    )
    assert status == "ok" and "'3'" in text and "calls" in text
    status, text = status_of(client, "%%sonde it's\nz = 3")
    assert status == "ok" and "not profiled" in text
    status, text = status_of(
        client, "import sonde\ns = sonde.session(save_profiles=False).start()"
    )
    status, text = status_of(client, "%%sonde\nz += 1\nprint('z is', z)")
    assert status == "ok" and "not profiled" in text and "z is 4" in text
    assert status_of(client, "s.stop()")[0] == "ok"
