"""torch in a session: watch() brings what `sonde run` brings, and switches hold."""

import json

import pytest
from conftest import python

pytest.importorskip("torch")

SCRIPT = """
import json, sys
import torch, sonde
from sonde.integrations.torch import watch
from torch.utils.data import DataLoader, TensorDataset

def train():
    data = TensorDataset(torch.randn(40, 4), torch.randn(40, 1))
    model, loader = torch.nn.Linear(4, 1), DataLoader(data, batch_size=8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        (model(x) - y).square().mean().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

train()  # before: nothing is recorded
with sonde.session(output=sys.argv[1], **json.loads(sys.argv[2])) as session:
    assert watch() and watch()
    train()
train()  # after: nor is this
report = session.report()
print(json.dumps({
    "phases": {p["phase"]: p["count"] for p in report.phases if p["count"]},
    "steps": report.summary["step_ms"]["count"],
    "optimizer_steps": report.summary["optimizer_steps"],
}))
"""


def counts(tmp_path, **fields):
    done = python("-c", SCRIPT, tmp_path / "run", json.dumps(fields))
    return json.loads(done.stdout.splitlines()[-1])


def test_phases_and_steps_without_sonde_run(tmp_path):
    found = counts(tmp_path)
    phases = found["phases"]
    assert phases["forward"] == phases["backward"] == phases["gradient"] == 5
    assert phases["optimizer"] in (5, 10) and phases["data_loading"] >= 5
    assert found["steps"] == 5 and found["optimizer_steps"] == 5


@pytest.mark.parametrize(
    "field, phase",
    [
        ("profile_forward_pass", "forward"),
        ("profile_backward_pass", "backward"),
        ("profile_optimizer_step", "optimizer"),
        ("profile_gradient_computation", "gradient"),
        ("profile_data_loading", "data_loading"),
    ],
)
def test_a_phase_that_is_switched_off_is_not_there(tmp_path, field, phase):
    found = counts(tmp_path, **{field: False})
    assert phase not in found["phases"]
    assert len(found["phases"]) >= 3 and found["steps"] == 5
