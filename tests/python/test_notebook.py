# timeout: 200
"""%%sonde in a real Jupyter kernel."""

import os
import queue
import time

import pytest
from conftest import environment

jupyter_client = pytest.importorskip("jupyter_client", reason="no jupyter_client here")
pytest.importorskip("ipykernel", reason="no ipykernel here")


@pytest.fixture
def kernel(tmp_path):
    manager = jupyter_client.KernelManager(kernel_name="python3")
    import sys

    manager.kernel_cmd = [
        sys.executable,
        "-m",
        "ipykernel_launcher",
        "-f",
        "{connection_file}",
    ]
    manager.start_kernel(cwd=str(tmp_path), env=environment(HOME=str(tmp_path)))
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    yield manager, client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def run_cell(client, code, on_started=None):
    """Everything the cell showed: text, HTML, errors."""
    message = client.execute(code)
    shown, begun = [], False
    end = time.monotonic() + 60
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
        shown.append(content.get("evalue", ""))
        if on_started and not begun and "started" in content.get("text", ""):
            begun = True
            on_started()
        if answer["msg_type"] == "status" and content["execution_state"] == "idle":
            return "\n".join(filter(None, shown))
    raise AssertionError("the kernel did not answer")


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
