"""Steps, epochs and samples where they are hard to see: loaders read in turns, loops that
are left or killed, batches of odd shapes, evaluations that nobody announces."""

from __future__ import annotations

import sys

import pytest
from conftest import python

torch = pytest.importorskip("torch")
if hasattr(sys, "gettotalrefcount"):
    pytest.skip("too slow with a debug interpreter", allow_module_level=True)

HEAD = """
import os, signal, time, torch, torch.nn as nn
from torch.utils.data import DataLoader, Dataset, Subset
torch.manual_seed(0)
torch.set_num_threads(1)
class Slow(Dataset):
    def __init__(self, n, s=0.0): self.n, self.s = n, s
    def __len__(self): return self.n
    def __getitem__(self, i):
        time.sleep(self.s)
        return torch.ones(4)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
def train(x):
    opt.zero_grad(); net(x).sum().backward(); opt.step()
def cycle(loader):
    while True:
        for x in loader: yield x
"""


def step_ms(answer):
    return answer["summary"]["step_ms"]


def epoch_steps(answer):
    return [e["steps"] for e in answer["epochs"]]


# ---- several loaders ----

IN_TURNS = {
    "zip": "for x, u in zip(a, b): train(torch.cat([x, u]))",
    "next": "it = iter(b)\n    for x in a: u = next(it); train(torch.cat([x, u]))",
}


@pytest.mark.parametrize("kind", IN_TURNS)
def test_a_round_of_loaders_is_one_step(run, kind):
    answer = run(
        HEAD
        + "a, b = DataLoader(Slow(24, 0.01), 4), DataLoader(Slow(24, 0.005), 4)\n"
        + f"for epoch in range(3):\n    {IN_TURNS[kind]}"
    )
    assert step_ms(answer)["count"] == 18
    assert step_ms(answer)["p50"] >= 60  # 40 for one, 20 for the other
    assert epoch_steps(answer) == [6, 6, 6]
    assert [e["samples"] for e in answer["epochs"]] == [24, 24, 24]
    assert [x["training"] for x in answer["loaders"]] == [True, True]
    assert "INPUT" in answer["summary"]["verdict"]


def test_a_look_at_a_batch_does_not_lead(run):
    answer = run(
        HEAD
        + """
loader = DataLoader(Slow(24, 0.001), 4)
shown = iter(loader); next(shown)
time.sleep(1)
for epoch in range(2):
    for x in loader: train(x)
"""
    )
    assert step_ms(answer)["count"] == 12
    assert step_ms(answer)["max"] < 500
    assert epoch_steps(answer) == [6, 6]


def test_the_longer_of_two_loaders_has_no_step_of_its_own(run):
    answer = run(
        HEAD
        + """
a, b = DataLoader(Slow(24), 4), DataLoader(Slow(16), 4)
for epoch in range(2):
    for x, u in zip(a, b): train(x)
"""
    )
    assert step_ms(answer)["count"] == 8
    assert epoch_steps(answer) == [4, 4]


# ---- the last step ----

BEHIND = {
    "sleep": "time.sleep(1)",
    "evaluation": """
net.eval()
with torch.no_grad():
    for x in DataLoader(Slow(10, 0.1), 1): net(x)
""",
}


@pytest.mark.parametrize("kind", BEHIND)
def test_the_last_step_ends_with_its_work(run, kind):
    answer = run(
        HEAD
        + "it = iter(DataLoader(Slow(40), 4))\nfor i in range(5): train(next(it))\n"
        + BEHIND[kind]
    )
    assert step_ms(answer)["count"] == 5
    assert step_ms(answer)["max"] < 500
    assert epoch_steps(answer) == [5]
    assert answer["epochs"][0]["duration_s"] < 0.5


def test_a_loop_that_is_left_keeps_what_its_body_does_last(run):
    answer = run(
        HEAD
        + """
for i, x in enumerate(DataLoader(Slow(40), 4)):
    train(x); time.sleep(0.02)
    if i == 4: break
time.sleep(0.5)
"""
    )
    assert step_ms(answer)["count"] == 5
    assert 20 <= step_ms(answer)["min"] <= step_ms(answer)["max"] < 400


def test_a_batch_that_nothing_was_done_with_is_no_step(run):
    answer = run(
        HEAD
        + """
for i, x in enumerate(DataLoader(Slow(40), 4)):
    if i == 5: break
    train(x)
"""
    )
    assert step_ms(answer)["count"] == 5
    assert answer["epochs"][0]["samples"] == 20


# ---- epochs that did not end ----


def test_the_pass_under_way_is_an_epoch(run):
    loop = "g = cycle(DataLoader(Slow(48), 4))\nfor i in range(30): train(next(g))"
    answer = run(HEAD + loop)
    assert step_ms(answer)["count"] == 30
    assert epoch_steps(answer) == [12, 12, 6]


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM"])
def test_the_pass_of_a_killed_program_is_an_epoch(run, name):
    answer = run(
        HEAD
        + f"""
g = cycle(DataLoader(Slow(48), 4))
for i in range(30): train(next(g))
os.kill(os.getpid(), signal.{name})
time.sleep(5)
""",
        check=False,
    )
    assert epoch_steps(answer) == [12, 12, 6]
    assert answer["epochs"][-1]["samples"] == 24


# ---- samples ----

COLLATES = {
    "detection": ("lambda b: tuple(zip(*b))", "b[0][0]", 6),
    "packed": ("lambda b: nn.utils.rnn.pack_sequence([x for x, _ in b])", "b.data", 6),
    "nodes": ("lambda b: torch.cat([x for x, _ in b])", "b", 6),
    "one by one": ("None, batch_size=None", "b[0]", 1),
}


@pytest.mark.parametrize("kind", COLLATES)
def test_samples_are_the_indices_of_a_batch(run, kind):
    collate, x, size = COLLATES[kind]
    batch = "" if "batch_size" in collate else "batch_size=6, "
    answer = run(
        HEAD
        + f"""
data = [(torch.ones(3, 4), 0) for _ in range(24)]
for epoch in range(2):
    for b in DataLoader(data, {batch}collate_fn={collate}): train({x})
"""
    )
    assert [e["samples"] for e in answer["epochs"]] == [24, 24]
    rate = size * answer["summary"]["steps_per_s"]
    assert answer["summary"]["samples_per_s"] == pytest.approx(rate, rel=1e-3)


@pytest.mark.parametrize("workers", [0, 2])
def test_an_iterables_last_batch_is_short(run, workers):
    answer = run(
        HEAD
        + f"""
from torch.utils.data import IterableDataset
class Stream(IterableDataset):
    def __iter__(self): return iter([torch.ones(4)] * 10)
for x in DataLoader(Stream(), 4, num_workers={workers}): train(x)
"""
    )
    assert [e["samples"] for e in answer["epochs"]] == [10 * max(1, workers)]


# ---- evaluation ----


def test_who_only_asks_without_gradients_evaluates(run):
    answer = run(
        HEAD
        + """
a, v = DataLoader(Slow(24), 4), DataLoader(Slow(20, 0.01), 4)
for epoch in range(3):
    for i, x in enumerate(a):
        train(x)
        if i == 2:
            for y in v:
                with torch.no_grad(): net(y)
"""
    )
    assert step_ms(answer)["count"] == 18
    assert answer.phase("evaluation") > 0.5  # but for the first batch of all
    assert answer.phase("data_loading") < 0.1
    assert [x["training"] for x in answer["loaders"]] == [True, False]


def test_a_loader_may_train_and_evaluate(run):
    answer = run(
        HEAD
        + """
loader = DataLoader(Slow(20, 0.005), 4)
for epoch in range(2):
    net.train()
    for x in loader: train(x)
    net.eval()
    with torch.no_grad():
        for _ in range(2):
            for x in loader: net(x)
"""
    )
    (loader,) = answer["loaders"]
    assert loader["training"]
    assert 0.5 < loader["step_share"] <= 1.01
    assert step_ms(answer)["count"] == 10


# ---- the program's own code ----

TALKS = """
import torch, torch.nn as nn
from torch.utils.data import DataLoader, Dataset, Sampler
class Data(Dataset):
    def __len__(self): print("len"); return 8
    def __getitem__(self, i): return torch.ones(2)
class Order(Sampler):
    def __init__(self): pass
    def __iter__(self): return iter(range(8))
class Net(nn.Module):
    def __init__(self): super().__init__(); self.l = nn.Linear(2, 1)
    def forward(self, x): return self.l(x)
    def parameters(self, *a): print("parameters"); return super().parameters(*a)
    def named_parameters(self, *a, **k):
        print("named_parameters"); return super().named_parameters(*a, **k)
    def modules(self): print("modules"); return super().modules()
    def __getattr__(self, name):
        if name in ("module", "_orig_mod"): print(name)
        return super().__getattr__(name)
net = Net()
for x in DataLoader(Data(), batch_sampler=[[0, 1], [2, 3]]): net(x).sum().backward()
for x in DataLoader(Data(), 4, sampler=Order()): net(x).sum().backward()
"""


def test_code_of_the_program_is_not_called(run):
    answer = run(TALKS)
    assert answer.stdout == python("-c", TALKS).stdout
    assert answer["models"][0]["parameters"] == 3


def test_the_slowest_sample_is_named_under_its_subset(run):
    answer = run(
        HEAD
        + """
class Late(Slow):
    def __getitem__(self, i):
        time.sleep(0.05 if i == 33 else 0.001)
        return torch.ones(4)
for x in DataLoader(Subset(Late(40), range(20, 40)), 4): train(x)
"""
    )
    (loader,) = answer["loaders"]
    assert loader["slowest_samples"][0]["index"] == 33
    slowest = max(loader["recent_batches"], key=lambda b: b["slowest_ms"] or 0)
    assert slowest["slowest_index"] == 33


def test_whoever_counts_steps_counts_those_that_are_recorded(run):
    answer = run(
        HEAD
        + """
from sonde import _sonde
told = []
_sonde.steps_told(told.append)
loader = DataLoader(Slow(24), 4)
for epoch in range(5):
    for x in loader: train(x)
assert sum(told) == 30, told
assert told.count(-1) == 5  # the loader was asked once more, in vain
"""
    )
    assert step_ms(answer)["count"] == 30
