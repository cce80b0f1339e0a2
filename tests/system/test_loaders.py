# timeout: 600
"""Data loaders: what the report says against what the program itself clocked.

Times are of the same instants, so they agree however busy the machine is: within 2 %, and
a few scheduler ticks for a program that lost the core between its clock and ours.
"""

import json
import subprocess
from pathlib import Path

import pytest
from sonde_test import BUILD, operation, run, signal_of

PYTHON = "/usr/bin/python3"
PROGS = Path(__file__).resolve().parent / "progs"
BATCHES, SAMPLES = 30, 240  # of loader_truth.py, both epochs


def has_torch():
    found = list((BUILD / "python" / "sonde").glob("_sonde.*.so"))
    done = subprocess.run([PYTHON, "-c", "import torch"], capture_output=True)
    return bool(found) and done.returncode == 0


pytestmark = pytest.mark.skipif(
    not has_torch(), reason="no Python package, or no torch to watch"
)


def near(measured, truth, slack_s=0.02):
    return abs(measured - truth) <= 0.02 * truth + slack_s


def total_s(times):
    return times["mean"] * times["count"] / 1000


@pytest.fixture(scope="module")
def truths(tmp_path_factory):
    """loader_truth.py without workers, with forked and with spawned ones: run once."""
    done = {}

    def of(*arguments):
        if arguments not in done:
            directory = tmp_path_factory.mktemp("loader") / "run"
            ran = run(directory, PYTHON, PROGS / "loader_truth.py", *arguments)
            done[arguments] = json.loads(ran.stdout), ran.report()
        return done[arguments]

    return of


def the_loader(answer):
    assert len(answer["loaders"]) == 1
    return answer["loaders"][0]


@pytest.mark.parametrize("arguments", [("0",), ("2",), ("2", "spawn")])
def test_times_are_those_the_program_clocked(truths, arguments):
    truth, answer = truths(*arguments)
    loader = the_loader(answer)
    assert loader["batches"] == BATCHES and loader["samples"] == SAMPLES
    assert loader["sample_ms"]["count"] == SAMPLES
    assert loader["sample_timing"] == "every sample"
    assert near(total_s(loader["sample_ms"]), truth["sample"])
    assert near(total_s(loader["sample_cpu_ms"]), truth["cpu"])
    assert near(total_s(loader["collate_ms"]), truth["collate"])
    assert near(loader["wait_s"], truth["wait"] - startup(loader), 0.03)
    transforms = {t["name"]: t for t in loader["transforms"]}
    assert set(transforms) == {"Work", "RandomJitter"}
    assert near(transforms["Work"]["total_s"], truth["work"])
    assert near(transforms["RandomJitter"]["total_s"], truth["jitter"])
    assert transforms["RandomJitter"]["random"] and not transforms["Work"]["random"]
    for epoch, first in zip(loader["epoch_list"], truth["first"]):
        assert near(epoch["first_batch_s"], first, 0.03)


def test_batches_of_slow_steps_are_all_weighed(tmp_path):
    """What a step takes goes with what is in its batch: padding is judged by both."""
    ran = run(tmp_path / "run", PYTHON, PROGS / "loader_lengths.py", "0.005")
    loader = the_loader(ran.report())
    assert loader["batch_bytes"]["count"] == loader["batches"] == 120
    assert loader["bytes"] == json.loads(ran.stdout)["bytes"]


def startup(loader):
    """The program's clock for the first wait of an epoch began before iter()."""
    return sum(e["iter_s"] for e in loader["epoch_list"])


def test_settings_and_place_are_the_programs(truths):
    loader = the_loader(truths("2")[1])
    assert loader["file"].endswith("loader_truth.py") and loader["line"] > 80
    assert loader["dataset"] == "Files" and loader["dataset_length"] == 120
    assert loader["num_workers"] == 2 and loader["prefetch_factor"] == 2
    assert loader["batch_size"] == 8 and loader["shuffle"]
    assert loader["collate_fn"] == "collate" and loader["start_method"] == "fork"
    assert not loader["pin_memory"] and not loader["persistent_workers"]
    assert loader["training"] and loader["epochs"] == 2
    assert all(e["exhausted"] and e["batches"] == 15 for e in loader["epoch_list"])


@pytest.mark.parametrize("arguments", [("0",), ("2",)])
def test_slow_samples_are_named_with_what_made_them_slow(truths, arguments):
    truth, answer = truths(*arguments)
    slowest = the_loader(answer)["slowest_samples"]
    # On a busy machine others may be slow as well: the program knows which.
    for sample, (seconds, index) in zip(slowest[:4], truth["slowest"]):
        assert near(sample["ms"] / 1000, seconds, 0.01)
        assert sample["path"] == f"/data/{sample['index']}.jpg"
    assert {i for _, i in truth["slowest"][:4]} <= {s["index"] for s in slowest[:8]}
    by_transform = [s for s in slowest if s["index"] == 33]
    by_itself = [s for s in slowest if s["index"] == 77]
    assert len(by_transform) == len(by_itself) == 2
    for sample in by_transform:
        assert sample["times_median"] > 2
        assert sample["slowest_transform"] == "RandomJitter"
        assert sample["slowest_transform_ms"] >= 120
    for sample in by_itself:
        assert sample["ms"] - sample["slowest_transform_ms"] >= 140
        assert sample["cpu_ms"] < sample["ms"] / 2


def test_workers_and_what_they_did(truths):
    truth, answer = truths("2")
    loader = the_loader(answer)
    workers = loader["workers"]
    assert [w["worker"] for w in workers] == [0, 1]
    assert all(w["processes"] == 2 and w["unheard"] == 0 for w in workers)
    assert sum(w["samples"] for w in workers) == SAMPLES
    assert sum(w["batches"] for w in workers) == BATCHES
    busy = sum(w["busy_s"] for w in workers)
    assert near(busy, truth["sample"] + truth["collate"], 0.05)
    for w in workers:
        assert w["busy_s"] + w["idle_s"] <= w["alive_s"] * 1.01 + 0.01
    roles = [p["role"] for p in answer["processes"]]
    assert sorted(roles) == ["loader worker 0"] * 2 + ["loader worker 1"] * 2 + ["main"]


def test_batches_are_followed_from_index_to_step(truths):
    loader = the_loader(truths("2")[1])
    batches = loader["recent_batches"]
    assert [(b["epoch"], b["batch"]) for b in batches] == [
        (e, k) for e in range(2) for k in range(15)
    ]
    for step, b in enumerate(batches, 1):
        moments = ["index_sent_s", "begun_s", "made_s", "put_s", "arrived_s", "given_s"]
        times = [b[m] for m in moments]
        # Clocks of two processes agree to a microsecond.
        assert all(x <= y + 2e-6 for x, y in zip(times, times[1:])), b
        assert b["put_s"] <= b["sent_s"] and b["asked_s"] <= b["given_s"]
        assert b["worker"] in (0, 1) and b["samples"] == 8
        assert b["step"] == step
        if b["sent_s"] < b["asked_s"]:
            assert b["ready"]
        if b["put_s"] > b["asked_s"]:
            assert not b["ready"]


def test_without_workers_the_phases_tell_loading_from_the_rest(truths):
    truth, answer = truths("0")
    phases = {p["phase"]: p["total_s"] for p in answer["phases"]}
    assert near(phases["preprocessing"], truth["work"])
    assert near(phases["augmentation"], truth["jitter"])
    assert near(phases["collate"], truth["collate"])
    inside = truth["work"] + truth["jitter"] + truth["collate"]
    assert near(phases["data_loading"], truth["wait"] - inside, 0.03)
    item = operation(answer, "DataLoader.next", "DataLoader.fetch", "Files.__getitem__")
    assert item["count"] == SAMPLES and near(item["total_s"], truth["sample"])


def test_a_batch_that_comes_before_its_turn_waits(tmp_path):
    done = run(
        tmp_path / "run",
        PYTHON,
        "-c",
        """
import json, time, torch
from torch.utils.data import DataLoader, Dataset
class Uneven(Dataset):
    def __len__(self): return 8
    def __getitem__(self, i):
        time.sleep(0.5 if i in (0, 4) else 0.01)
        return torch.tensor([i, time.clock_gettime(time.CLOCK_MONOTONIC)], dtype=torch.float64)
ends = {}
for batch in DataLoader(Uneven(), 1, num_workers=2, prefetch_factor=1):
    for i, end in batch.tolist():
        ends[int(i)] = end
# 0 and 4 take long while their neighbour of the other worker is done.
print(json.dumps([ends[0] - ends[1], ends[4] - ends[5]]))
""",
    )
    truth = json.loads(done.stdout)
    loader = the_loader(done.report())
    early = [b for b in loader["recent_batches"] if b["early"]]
    assert {b["batch"] for b in early} >= {1, 5}
    assert loader["out_of_order"]["count"] == len(early)
    waited = loader["out_of_order"]["wait_s"]
    # The early batch travels for some milliseconds before it is there to wait.
    assert 0.8 * sum(truth) <= waited <= sum(truth) + 0.05
    assert all(b["ready"] for b in early)


def test_killed_in_the_middle_of_an_epoch_everything_is_there(tmp_path):
    done = run(tmp_path / "run", PYTHON, PROGS / "loader_kill.py", check=False)
    assert signal_of(done.returncode).name == "SIGKILL"
    truth = json.loads(done.stdout)
    loader = the_loader(done.report())
    assert loader["batches"] == truth["batches"]
    made = sum(truth["made"])
    # A worker killed between its own count and its return has one more.
    assert made - len(truth["made"]) <= loader["sample_ms"]["count"] <= made
    by_pid = {w["pid"]: w for w in loader["workers"]}
    for pid, count in zip(truth["pids"], truth["made"]):
        # Whole batches of 4, and one that was being made.
        assert count - 4 <= by_pid[pid]["samples"] <= count
        assert by_pid[pid]["unheard"] == 0
    epoch = loader["epoch_list"][0]
    assert epoch["batches"] == truth["batches"] and not epoch["exhausted"]


def test_quick_samples_are_looked_at_now_and_then(tmp_path):
    done = run(
        tmp_path / "run",
        PYTHON,
        "-c",
        """
import torch
from torch.utils.data import DataLoader, TensorDataset
for epoch in range(2):
    for batch in DataLoader(TensorDataset(torch.arange(64000)), 64): pass
""",
    )
    loader = the_loader(done.report())
    assert loader["samples"] == 128000 and loader["batches"] == 2000
    assert loader["batch_ms"]["count"] == 2000
    if loader["sample_ms"]["mean"] < 0.015:  # else the machine is very busy
        assert loader["sample_timing"] == "every sample of one batch in 32"
        assert 64 <= loader["sample_ms"]["count"] < 64000


EPOCHS = """
import torch
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(torch.zeros(48, 4))
net = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
def loader(batch, workers=WORKERS):
    return DataLoader(data, batch, num_workers=workers)
kept = [loader(16, 0), loader(16, 0)]
for epoch in range(3):
    for (x,) in loader(4):
        opt.zero_grad(); net(x).sum().backward(); opt.step()
for other in kept:
    for (x,) in other: pass
"""


@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader_made_anew_for_each_epoch_is_one(tmp_path, workers):
    program = EPOCHS.replace("WORKERS", str(workers))
    done = run(tmp_path / "run", PYTHON, "-c", program)
    first, *others = done.report()["loaders"]
    assert first["epochs"] == 3 and first["batches"] == 36 and first["samples"] == 144
    assert [e["epoch"] for e in first["epoch_list"]] == [0, 1, 2]
    assert first["training"] and first["batch_size"] == 4
    # Two that there are at the same time are two, though made at one line alike.
    assert [(x["epochs"], x["batches"], x["training"]) for x in others] == [
        (1, 3, False),
        (1, 3, False),
    ]
    if workers:
        assert [w["processes"] for w in first["workers"]] == [3]


def test_a_program_without_loaders_has_none(tmp_path):
    assert run(tmp_path / "run", "true").report()["loaders"] == []
