# labels: no_asan
"""From a run to findings: programs with a known illness, real runs, the real command."""
# timeout: 400

import json
import re
import subprocess
import sys

import pytest
from sonde_test import SOURCE, environment, run, sonde

PYTHON = "/usr/bin/python3"


def has_torch():
    test = subprocess.run([PYTHON, "-c", "import torch"], capture_output=True, check=False)
    return test.returncode == 0


needs_torch = pytest.mark.skipif(not has_torch(), reason="no torch for " + PYTHON)


def sick(name):
    return str(SOURCE / "workloads" / "sick" / f"{name}.py")


@pytest.fixture(scope="module")
def waiting(tmp_path_factory):
    """Samples that wait for a store, a loader without workers."""
    directory = tmp_path_factory.mktemp("waiting") / "run"
    env = environment(SONDE_DIR=directory.parent / "store")
    return run(directory, PYTHON, sick("remote_samples"), env=env)


@needs_torch
def test_the_illness_is_first_with_evidence_and_advice(waiting):
    answer = waiting.report()
    first = answer["bottlenecks"][0]
    assert first["id"] == "data_loading_bound"
    assert first["severity"] == "critical"
    assert "num_workers=0 at remote_samples.py:" in first["recommendation"]
    gain = first["predicted_gain"]
    assert 0.2 < gain["low"] <= gain["mid"] <= gain["high"] <= 1  # others may want cores
    assert gain["mid"] > 0.5 and gain["of"] == "step"
    metrics = {e["metric"]: e for e in first["evidence"]}
    assert metrics["input_share"]["value"] > 0.8
    assert metrics["num_workers"]["value"] == 0
    assert all(e["source"] and e["unit"] for e in first["evidence"])
    assert answer["summary"]["bound_by"] == "input"
    assert answer["summary"]["verdict"].startswith("INPUT-BOUND")
    assert first["recommendation"] in answer["recommendations"]


@needs_torch
def test_every_second_is_in_one_part_and_one_phase(waiting):
    answer = waiting.report()
    account = answer["account"]
    parts = [
        "startup_s", "warmup_s", "steady_s", "checkpoint_s", "evaluation_s",
        "epoch_change_s", "between_steps_s", "end_s",
    ]  # fmt: skip
    total = sum(account[p] for p in parts)
    assert total == pytest.approx(account["wall_s"], rel=1e-6)
    assert account["wall_s"] == pytest.approx(answer["run"]["duration_s"], rel=0.02, abs=0.1)
    assert sum(p["share"] for p in account["phases"]) == pytest.approx(1, abs=0.005)
    assert account["steps"] == 200


@needs_torch
def test_symptoms_stand_behind_their_cause(waiting):
    ids = [b["id"] for b in waiting.report()["bottlenecks"]]
    scores = [b["score"] for b in waiting.report()["bottlenecks"]]
    assert scores == sorted(scores, reverse=True)
    for symptom in ("io_wait", "cpu_saturated"):
        if symptom in ids:
            assert ids.index(symptom) > 0


@needs_torch
def test_what_if_answers_for_other_settings(waiting):
    done = sonde(
        "report", "--json", waiting.directory, "--what-if", "workers=4",
        "--what-if", "data=free", "--what-if", "workers=0",
    )  # fmt: skip
    four, free, now = json.loads(done.stdout)["what_if"]
    assert 0.5 < four["gain"] < 0.85  # four waits at a time
    assert four["low_ms"] < four["step_ms"] < four["high_ms"]
    assert free["step_ms"] < four["step_ms"]
    assert now["step_ms"] == pytest.approx(now["now_ms"], rel=0.01)
    text = sonde("report", waiting.directory, "--what-if", "workers=4").stdout
    assert "WHAT IF" in text


@needs_torch
def test_what_is_told_per_step_is_of_the_mean_step(tmp_path):
    """A few slow steps are what this cure is about: the median has none of them."""
    done = run(tmp_path / "run", PYTHON, sick("few_huge_samples"))
    account = done.report()["account"]
    assert account["mean_ms"] > 1.3 * account["p50_ms"]
    text = " ".join(sonde("report", tmp_path / "run").stdout.split())
    told = re.search(r"less time per step \(([\d.]+) → ", text)
    assert told, text
    assert float(told[1]) == pytest.approx(account["mean_ms"], rel=0.01)


@pytest.fixture(scope="module")
def evaluating(tmp_path_factory):
    """Evaluates after every tenth step."""
    directory = tmp_path_factory.mktemp("evaluating") / "run"
    env = environment(SONDE_DIR=directory.parent / "store")
    return run(directory, PYTHON, sick("tests_all_the_time"), env=env)


@needs_torch
def test_what_if_answers_for_what_is_done_now_and_then(evaluating):
    done = sonde(
        "report", "--json", evaluating.directory, "--what-if", "evaluation=1",
        "--what-if", "evaluation=20", "--what-if", "evaluation=20,workers=1",
    )  # fmt: skip
    answer = json.loads(done.stdout)
    now, seldom, both = answer["what_if"]
    account = answer["account"]
    loop = account["wall_s"] - account["startup_s"] - account["end_s"]
    assert now["loop_now_s"] == pytest.approx(loop, rel=1e-6)
    assert now["loop_s"] == pytest.approx(loop, rel=1e-6)
    assert seldom["evaluation"] == 20 and seldom["checkpoint"] == 1
    # A twentieth of it is left, and steps are not slower for it.
    assert seldom["loop_s"] <= loop - 0.95 * account["evaluation_s"] + 1e-6
    assert seldom["loop_low_s"] < seldom["loop_s"] < seldom["loop_high_s"]
    assert both["workers"] == 1 and both["loop_s"] < loop
    text = sonde("report", evaluating.directory, "--what-if", "evaluation=20").stdout
    assert "from the first step to the last" in text


@needs_torch
def test_what_is_predicted_of_the_loop_is_not_called_the_run(evaluating):
    answer = evaluating.report()
    first, account = answer["bottlenecks"][0], answer["account"]
    assert first["id"] == "evaluation_heavy" and first["predicted_gain"]["of"] == "run"
    assert "from the first step to the last" in first["description"]
    text = " ".join(sonde("report", "--full", evaluating.directory).stdout.split())
    predicted = re.search(r"less time from the first step to the last \(([\d.]+) →", text)
    loop = account["wall_s"] - account["startup_s"] - account["end_s"]
    assert float(predicted[1]) == pytest.approx(loop, rel=0.01)
    # What evaluates is in no steady step, and people see both.
    assert f"{account['steps']} steps" in text and "steady ones" in text


@needs_torch
def test_what_if_answers_for_a_faster_optimizer_or_collate_function(evaluating, waiting):
    done = sonde("report", "--json", evaluating.directory, "--what-if", "optimizer=4")
    report = json.loads(done.stdout)
    (faster,) = report["what_if"]
    share = next(p["share"] for p in report["account"]["phases"] if p["phase"] == "optimizer")
    least = faster["now_ms"] * (1 - 0.75 * share)
    # Three quarters of it go, and what comes behind is warmer by a millisecond at most.
    assert faster["optimizer"] == 4
    assert max(least - 1, 0) < faster["step_ms"] <= least * 1.001
    done = sonde("report", "--json", waiting.directory, "--what-if", "collate=10")
    (joined,) = json.loads(done.stdout)["what_if"]
    assert joined["collate"] == 10 and joined["transform"] == 1
    assert 0.8 * joined["now_ms"] < joined["step_ms"] < joined["now_ms"]


@needs_torch
@pytest.mark.parametrize(
    ("question", "why"),
    [
        ("checkpoint=2", "no checkpoint was recorded"),
        ("optimizer=0.1", "1 or more"),
        ("evaluation=0.5", "1 or more"),
        ("batch=2,workers=2", "goes with no setting of the loader"),
    ],
)
def test_what_the_run_cannot_tell_is_refused_with_the_reason(evaluating, question, why):
    done = sonde("report", evaluating.directory, "--what-if", question, check=False)
    assert done.returncode == 2
    assert why in done.stderr


@needs_torch
def test_a_wrong_question_is_refused_with_what_is_right(waiting):
    done = sonde("report", waiting.directory, "--what-if", "worker=4", check=False)
    assert done.returncode == 2
    assert "workers=N" in done.stderr


@needs_torch
def test_limits_come_from_sonde_yaml_and_are_checked(waiting, tmp_path):
    (tmp_path / "sonde.yaml").write_text("rules:\n  off: [data_loading_bound]\n")
    done = sonde("report", "--json", waiting.directory, cwd=tmp_path)
    ids = [b["id"] for b in json.loads(done.stdout)["bottlenecks"]]
    assert "data_loading_bound" not in ids
    (tmp_path / "sonde.yaml").write_text("rules:\n  data_wiat: 1\n")
    wrong = sonde("report", waiting.directory, cwd=tmp_path, check=False)
    assert wrong.returncode == 2
    assert "line 2" in wrong.stderr and "data_wiat" in wrong.stderr
    assert sonde("report", waiting.directory, "--rules", "odd", check=False).returncode == 2


@needs_torch
def test_the_exit_status_answers_when_asked(waiting):
    assert sonde("report", waiting.directory, check=False).returncode == 0
    bad = sonde("report", waiting.directory, "--fail-on", "critical", check=False)
    assert bad.returncode == 1


@needs_torch
def test_the_reference_set_judges_by_absolute_limits(waiting):
    done = sonde("report", "--json", waiting.directory, "--rules", "reference")
    answer = json.loads(done.stdout)
    assert answer["rules"]["set"] == "reference"
    # Samples of 4 ms are above the documents' 1 ms.
    assert "preprocessing_bound" in [b["id"] for b in answer["bottlenecks"]]


@needs_torch
def test_advice_that_was_followed_is_entered_in_the_ledger(tmp_path):
    script = tmp_path / "train.py"
    text = (SOURCE / "workloads" / "sick" / "remote_samples.py").read_text()
    script.write_text(text.replace("Remote(800)", "Remote(320)"))
    env = environment(SONDE_DIR=tmp_path / "store")
    sonde("run", "--quiet", "--", PYTHON, script, env=env, cwd=tmp_path)
    # What failed in between is no run to compare with.
    script.write_text("raise SystemExit(1)")
    sonde("run", "--quiet", "--", PYTHON, script, env=env, cwd=tmp_path, check=False)
    script.write_text(text.replace("Remote(800)", "Remote(320)"))
    after = sonde("run", "--", PYTHON, script, "--workers", "8", env=env, cwd=tmp_path)
    assert "SINCE" in after.stderr
    lines = (tmp_path / "store" / "ledger.jsonl").read_text().splitlines()
    assert len(lines) == 1
    entry = json.loads(lines[0])
    assert entry["kind"] == "data_loading_bound"
    assert entry["measured"] > 0.3
    # Asked again, it is not entered again.
    sonde("report", env=env, cwd=tmp_path)
    assert len((tmp_path / "store" / "ledger.jsonl").read_text().splitlines()) == 1
    # Who names both runs is told, and it is entered as well.
    (tmp_path / "store" / "ledger.jsonl").unlink()
    named = json.loads(sonde("compare", "--json", "@2", "@0", env=env, cwd=tmp_path).stdout)
    assert "data_loading_bound is gone" in named["since"]
    assert len((tmp_path / "store" / "ledger.jsonl").read_text().splitlines()) == 1


@needs_torch
def test_a_run_elsewhere_is_one_to_compare_with(tmp_path):
    script = tmp_path / "train.py"
    text = (SOURCE / "workloads" / "sick" / "remote_samples.py").read_text()
    script.write_text(text.replace("Remote(800)", "Remote(320)"))
    env = environment(SONDE_DIR=tmp_path / "store")
    (tmp_path / "store").mkdir()
    sonde("run", "-q", "-o", "mine", "--", PYTHON, script, env=env, cwd=tmp_path)
    assert (tmp_path / "store" / "elsewhere").read_text() == f"{tmp_path / 'mine'}\n"
    after = sonde("run", "-o", "next", "--", PYTHON, script, "--workers", "8", env=env, cwd=tmp_path)
    assert "SINCE" in after.stderr
    (line,) = (tmp_path / "store" / "ledger.jsonl").read_text().splitlines()
    assert json.loads(line)["kind"] == "data_loading_bound"
    # They are in no list, and without a store none is made.
    assert "train.py" not in sonde("list", env=env, cwd=tmp_path).stdout
    plain = environment(SONDE_DIR=tmp_path / "none")
    sonde("run", "-q", "-o", "third", "--", "true", env=plain, cwd=tmp_path)
    assert not (tmp_path / "none").exists()


def test_a_program_without_steps_gets_no_finding_above_low(tmp_path):
    code = "import hashlib\nfor i in range(300000): hashlib.sha256(b'x' * 1000).digest()\n"
    script = tmp_path / "hash.py"
    script.write_text(code)
    answer = run(tmp_path / "run", sys.executable, script).report()
    assert [b for b in answer["bottlenecks"] if b["severity"] != "low"] == []
    assert answer["account"] is None


def test_a_program_that_needs_its_data_does_not_leak(tmp_path):
    script = tmp_path / "index.py"
    script.write_text(
        "import json\nd = {}\nfor i in range(400000): d[str(i)] = [i] * 3\n"
        "s = json.dumps(d); e = json.loads(s); print(len(s), len(e))\n"
    )
    answer = run(tmp_path / "run", sys.executable, script).report()
    assert "memory_leak" not in [b["id"] for b in answer["bottlenecks"]]


IMPORTS = """\
import sys, time
sys.path.insert(0, {here!r})
import torch
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
time.sleep({before})
for _ in range(20):
    optimizer.zero_grad()
    model(torch.ones(4, 8)).mean().backward()
    optimizer.step()
"""


@needs_torch
@pytest.mark.parametrize(("before", "slow"), [(0, False), (4, True)])
def test_imports_are_no_slow_start_though_nobody_looks_at_stacks(tmp_path, before, slow):
    script = tmp_path / "train.py"
    script.write_text(IMPORTS.format(here=str(tmp_path), before=before))
    # As slow as a cold disk makes it.
    site = tmp_path / "torch"
    site.mkdir()
    (site / "__init__.py").write_text(
        "import sys, time\ntime.sleep(3)\nsys.path.pop(0)\n"
        "mine = sys.modules.pop('torch')\nimport torch\n"
    )
    answer = run(tmp_path / "run", PYTHON, script, options=("--level", "basic")).report()
    ids = [b["id"] for b in answer["bottlenecks"]]
    assert ("startup_bound" in ids) == slow


@needs_torch
def test_the_verdict_names_no_line_of_a_phase_as_outside_of_all(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        "import time, torch\n"
        "class Net(torch.nn.Linear):\n"
        "    def forward(self, x):\n"
        "        time.sleep(0.02)\n"
        "        return super().forward(x)\n"
        "model = Net(8, 8)\n"
        "for _ in range(50): model(torch.ones(64, 8))\n"
        "time.sleep(2)\n"
    )
    verdict = run(tmp_path / "run", PYTHON, script).report()["summary"]["verdict"]
    assert "outside any phase" in verdict
    assert "train.py:8" in verdict and "forward" not in verdict


def test_nothing_is_checked_that_nobody_measured(tmp_path):
    answer = run(
        tmp_path / "run", "/bin/true", options=("--no-monitors", "--no-preload")
    ).report()
    assert answer["bottlenecks"] == []
    missing = {u["id"]: u["missing"] for u in answer["rules"]["unchecked"]}
    assert missing["gil_contention"] == "gil_wait_share"
    assert missing["data_loading_bound"] == "input_share"


@needs_torch
def test_a_run_s_own_report_obeys_sonde_yaml(tmp_path):
    (tmp_path / "sonde.yaml").write_text("rules:\n  off: [fd_leak]\n")
    directory = tmp_path / "run"
    env = environment(SONDE_DIR=tmp_path / "store")
    done = sonde(
        "run", "--json", "-o", directory, "--", PYTHON, sick("never_closes"),
        cwd=tmp_path, env=env,
    )
    at_the_end = json.loads(done.stderr[done.stderr.index("{") :])
    later = json.loads(sonde("report", "--json", directory, cwd="/", env=env).stdout)
    assert "fd_leak" in [b["id"] for b in later["bottlenecks"]]
    assert "fd_leak" not in [b["id"] for b in at_the_end["bottlenecks"]]


EPOCHS = """
import time, torch
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(torch.randn(64, 8))
loader = DataLoader(data, batch_size=8, num_workers=6)
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
changes, end = 0.0, None
begin = time.perf_counter()
for _ in range(8):
    for (x,) in loader:
        if end is not None:
            changes += time.perf_counter() - end
            end = None
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        last = time.perf_counter()
    end = last
print(changes / (last - begin))
"""


@needs_torch
def test_the_share_of_epoch_changes_is_what_the_program_itself_measured(tmp_path):
    """Starting and ending workers was once counted twice: 121 % of the run."""
    done = run(tmp_path / "run", PYTHON, "-c", EPOCHS)
    truth = float(done.stdout)
    first = done.report()["bottlenecks"][0]
    assert first["id"] == "epoch_boundary_stall"
    share = {e["metric"]: e["value"] for e in first["evidence"]}["epoch_change_share"]
    assert share == pytest.approx(truth, abs=0.12)
    assert share <= 1 and first["predicted_gain"]["high"] <= 1
    assert first["predicted_gain"]["of"] == "run"
    shown = sonde("report", tmp_path / "run").stdout
    assert "less time from the first step to the last" in " ".join(shown.split())


BY_HAND = """
import math, torch

def weigh_by_hand(n):
    return sum(math.sin(i) for i in range(n))

model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(60):
    x = torch.full((4, 8), weigh_by_hand(200_000))
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()
"""


@needs_torch
def test_time_in_no_phase_is_told_by_the_function_that_takes_it(tmp_path):
    """Four rows that are made by hand were once called a batch too small."""
    script = tmp_path / "train.py"
    script.write_text(BY_HAND)
    answer = run(tmp_path / "run", PYTHON, script).report()
    assert "batch_too_small" not in [b["id"] for b in answer["bottlenecks"]]
    assert "weigh_by_hand" in answer["summary"]["verdict"]
    assert "train.py:" in answer["summary"]["verdict"]
