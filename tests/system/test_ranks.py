# timeout: 300
"""Ranks that a program starts itself: which is which, and what they say to each other."""

import subprocess

import pytest
from sonde_test import BUILD, environment, run

PYTHON = "/usr/bin/python3"
STEPS, LATE_S, MESSAGES = 20, 0.03, 6


def has_torch():
    done = subprocess.run([PYTHON, "-c", "import torch"], capture_output=True)
    return done.returncode == 0


pytestmark = pytest.mark.skipif(
    not (BUILD / "python" / "sonde" / "_layer.py").exists() or not has_torch(),
    reason="without the Python package, or torch for /usr/bin/python3",
)

# Rank 1 comes LATE_S late to every exchange: rank 0 is in it for that long.
PROGRAM = f"""
import sys, time
import torch, torch.distributed as dist, torch.multiprocessing as mp
from torch import nn

def train(rank, meet):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + meet, rank=rank, world_size=2)
    torch.manual_seed(rank)
    net = nn.Linear(8, 1)
    opt = torch.optim.SGD(net.parameters(), lr=1e-4)
    for step in range({STEPS}):
        opt.zero_grad()
        net(torch.randn(4, 8)).square().mean().backward()
        if rank == 1:
            time.sleep({LATE_S})
        if sys.argv[1] == "async":
            asked = [dist.all_reduce(p.grad, async_op=True) for p in net.parameters()]
            for work in asked:
                work.wait()
        else:
            for _ in range({MESSAGES}):
                dist.all_reduce(net.weight.grad)
        opt.step()
    total = net.weight.detach().sum()
    dist.all_reduce(total)
    if rank == 0:
        print(float(total), type(dist.all_reduce).__name__, dist.all_reduce.__module__)
    dist.destroy_process_group()

if __name__ == "__main__":
    mp.spawn(train, args=(sys.argv[2],), nprocs=2)
"""


@pytest.fixture(scope="module", params=["one by one", "async"])
def outcome(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    script = folder / "ranks.py"
    script.write_text(PROGRAM)
    how, env = request.param, environment(OMP_NUM_THREADS=1)
    bare = subprocess.run(
        [PYTHON, script, how, folder / "meet0"], capture_output=True, text=True, env=env
    )
    done = run(folder / "r", PYTHON, script, how, folder / "meet1", timeout=200, env=env)
    return how, bare, done


def test_nothing_changes_for_the_program(outcome):
    _, bare, done = outcome
    assert bare.returncode == 0, bare.stderr
    assert done.stdout == bare.stdout
    assert " function torch.distributed" in done.stdout


def test_ranks_are_known_without_their_environment(outcome):
    answer = outcome[2].report()
    ranks = [p["rank"] for p in answer["processes"] if p["rank"] is not None]
    assert sorted(ranks) == [0, 1]
    assert next(p for p in answer["processes"] if p["main"])["rank"] == 0


def test_exchanges_are_communication(outcome):
    how, _, done = outcome
    answer = done.report()
    main = next(p for p in answer["processes"] if p["main"])
    phase = next(p for p in main["phases"] if p["phase"] == "communication")
    calls = 2 * 2 if how == "async" else MESSAGES  # asked for, then waited for
    assert phase["count"] == STEPS * calls + 1
    waited = STEPS * LATE_S
    assert phase["total_s"] >= 0.95 * waited
    # What rank 1 says about the same time: it was late, not waiting.
    other = next(p for p in answer["processes"] if p["rank"] == 1)
    there = next(p for p in other["phases"] if p["phase"] == "communication")
    assert there["total_s"] <= phase["total_s"] - 0.8 * waited


def test_it_is_found(outcome):
    found = {b["id"] for b in outcome[2].report()["bottlenecks"]}
    assert "communication_bound" in found


# ---- what DistributedDataParallel exchanges inside the backward pass ----

REPLICAS = f"""
import sys, time
import torch, torch.distributed as dist, torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

def train(rank, meet):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + meet, rank=rank, world_size=2)
    torch.manual_seed(0)
    net = DistributedDataParallel(nn.Linear(64, 64))
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    for step in range({STEPS}):
        opt.zero_grad()
        loss = net(torch.randn(4, 64)).square().mean()
        if rank == 1:
            time.sleep({LATE_S})
        loss.backward()
        opt.step()
    if rank == 0:
        print(float(loss), type(DistributedDataParallel.forward).__name__)
    dist.destroy_process_group()

if __name__ == "__main__":
    mp.spawn(train, args=(sys.argv[1],), nprocs=2)
"""


def test_the_exchange_inside_backward_is_known(tmp_path):
    script, env = tmp_path / "replicas.py", environment(OMP_NUM_THREADS=1)
    script.write_text(REPLICAS)
    bare = subprocess.run(
        [PYTHON, script, tmp_path / "meet0"], capture_output=True, text=True, env=env
    )
    assert bare.returncode == 0, bare.stderr
    done = run(tmp_path / "r", PYTHON, script, tmp_path / "meet1", timeout=200, env=env)
    assert done.stdout == bare.stdout
    answer = done.report()
    found = {b["id"]: b for b in answer["bottlenecks"]}["communication_bound"]
    share = next(
        e["value"] for e in found["evidence"] if e["metric"] == "gradient_exchange_share"
    )
    step_s = answer["summary"]["step_ms"]["mean"] / 1e3
    assert share * step_s >= 0.8 * LATE_S  # rank 0 has waited for the other
    assert share <= 1
    assert "bf16_compress_hook" in found["recommendation"]
