# labels: no_asan
# timeout: 600
"""Training scripts as strangers write them (workloads/scripts), unchanged under `sonde run`:
the truth in their headers is what the report says, and they print what they print alone."""

import re
import socket
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from sonde_test import SOURCE, environment, report, run

PYTHON = "/usr/bin/python3"
SCRIPTS = SOURCE / "workloads" / "scripts"
NAMES = sorted(path.stem for path in SCRIPTS.glob("*.py"))


def truth(name):
    """The header: {"steps": 36, "phases": [...], "larger": [(a, factor, b)], ...}."""
    found = {"phases": [], "absent": [], "larger": []}
    for line in (SCRIPTS / f"{name}.py").read_text().splitlines():
        if not line.startswith("#"):
            break
        words = re.split(r"\s{3,}", line.lstrip("#").strip())[0].split()
        if words[:1] in (["phases"], ["absent"]):
            found[words[0]] = words[1:]
        elif words[:1] == ["larger"]:
            found["larger"].append((words[1], float(words[2]), words[3]))
        elif words[:1] in (["launch"], ["needs"]):
            found[words[0]] = words[1:]
        elif len(words) == 2 and words[1].isdigit():
            found[words[0]] = int(words[1])
    return found


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def command(name, known):
    words = [PYTHON]
    if "launch" in known:
        # Debian's torchrun reads "no redirection" as None on 3.11; ranks that do not
        # exist may be redirected.
        words += ["-m", "torch.distributed.run", f"--nproc_per_node={known['launch'][1]}"]
        words += ["-r", "9:1", "-t", "9:1", f"--master_port={free_port()}"]
    return [*words, str(SCRIPTS / f"{name}.py")]


def missing(known):
    """Why the script cannot run here; None when it can."""
    try:
        import torch
    except ImportError:
        return "python3-torch is not installed"
    if "compile" in known.get("needs", ()) and not hasattr(torch, "compile"):
        return f"torch {torch.__version__} has no torch.compile"
    return None


class Done(NamedTuple):
    stdout: str
    stderr: str
    returncode: int


class Outcome:
    """One script, alone and under Sonde."""

    def __init__(self, name, folder):
        self.truth = truth(name)
        env = environment(OMP_NUM_THREADS=1, CUDA_VISIBLE_DEVICES="")
        options = {"cwd": folder, "env": env, "text": True}
        alone = subprocess.Popen(
            command(name, self.truth), stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options
        )
        try:  # at the same time: nothing here depends on how fast they are
            words = command(name, self.truth)
            more = {"check": False, "cwd": folder, "env": env, "timeout": 250}
            self.under = run(folder / "run", *words, **more)
            out, errors = alone.communicate(timeout=250)
            self.alone = Done(out, errors, alone.returncode)
        finally:
            alone.kill()
        self.report = report(folder / "run")

    def typical_ms(self, phase):
        """The phase's time if each of its operations took its median: one that loses the
        core for a while does not count."""
        operations = [o for o in self.report["operations"] if o["phase"] == phase]
        paths = [tuple(o["path"]) for o in operations]
        outermost = [
            o
            for o, path in zip(operations, paths)
            if not any(path[: len(other)] == other != path for other in paths)
        ]
        return sum(o["count"] * o["p50_ms"] for o in outermost if o["count"])


_outcomes = {}


@pytest.fixture(params=NAMES)
def outcome(request, tmp_path_factory):
    name = request.param
    reason = missing(truth(name))
    if reason:
        pytest.skip(reason)
    if name not in _outcomes:
        _outcomes[name] = Outcome(name, tmp_path_factory.mktemp(name))
    return _outcomes[name]


def test_it_prints_the_same(outcome):
    assert outcome.alone.returncode == 0, outcome.alone.stderr
    assert outcome.under.returncode == 0, outcome.under.stderr
    assert outcome.alone.stdout and outcome.under.stdout == outcome.alone.stdout
    assert "sonde" not in outcome.under.stderr.lower()


def test_steps_are_counted(outcome):
    summary, known = outcome.report["summary"], outcome.truth
    assert summary["optimizer_steps"] == known["optimizer_steps"]
    assert summary["step_ms"]["count"] == known["steps"]


def test_epochs_are_counted(outcome):
    epochs = outcome.report["epochs"] or []
    assert len(epochs) == outcome.truth.get("epochs", 0)


def test_samples_are_counted(outcome):
    if "samples" not in outcome.truth:
        pytest.skip("no loader says how many")
    epochs = outcome.report["epochs"]
    assert sum(e["samples"] for e in epochs) == outcome.truth["samples"]
    assert sum(e["steps"] for e in epochs) == outcome.truth["steps"]
    assert outcome.report["summary"]["samples_per_s"] > 0


def test_phases_are_there(outcome):
    found = {p["phase"] for p in outcome.report["phases"] if p["count"]}
    assert found >= set(outcome.truth["phases"])
    assert not found & set(outcome.truth["absent"])


def test_phases_have_their_size(outcome):
    for larger, factor, smaller in outcome.truth["larger"]:
        big, small = outcome.typical_ms(larger), outcome.typical_ms(smaller)
        assert small > 0
        assert big > factor * small, f"{larger} {big:.2f} ms, {smaller} {small:.2f} ms"


def test_ranks_are_one_run(outcome):
    ranks = outcome.report["ranks"] or []
    if "ranks" not in outcome.truth:
        assert ranks == []
        return
    assert sorted(r["rank"] for r in ranks) == list(range(outcome.truth["ranks"]))
    assert outcome.report["run"]["world_size"] == outcome.truth["ranks"]
    assert all(r["steps"] == outcome.truth["steps"] for r in ranks)


def test_workers_are_seen(outcome):
    if "workers" not in outcome.truth:
        pytest.skip("no worker processes")
    (loader,) = [x for x in outcome.report["loaders"] if x["num_workers"]]
    assert loader["training"]
    assert len(loader["workers"]) == outcome.truth["workers"]
    started = sum(worker["processes"] for worker in loader["workers"])
    assert started == outcome.truth["workers"] * outcome.truth.get("epochs", 1)
    assert sum(worker["samples"] for worker in loader["workers"]) == (
        outcome.truth["samples"]
    )


def test_nothing_is_lost(outcome):
    summary = outcome.report["summary"]
    assert summary["lost"] == 0 and summary["unbalanced"] == 0
    assert summary["orphan_ends"] == 0
    # Zones of the main thread nest in steps or stand beside them: never more than all.
    shares = [p["share"] for p in outcome.report["phases"]]
    assert abs(sum(shares) - 1) < 1e-6


def test_the_truth_is_read_right():
    known = truth("plain_loop")
    assert known["steps"] == 36 and known["optimizer_steps"] == 36
    assert known["larger"] == [("data_loading", 2.0, "optimizer")]
    assert truth("ddp_gloo")["launch"] == ["torchrun", "2"]
    assert truth("iterable_dataset")["absent"] == ["evaluation", "checkpoint"]
    assert len(NAMES) >= 12 and Path(SCRIPTS / "gan.py").is_file()
    for name in NAMES:
        assert {"steps", "optimizer_steps"} <= truth(name).keys() and truth(name)["phases"]
        assert "sonde" not in (SCRIPTS / f"{name}.py").read_text().split('"""')[1]
