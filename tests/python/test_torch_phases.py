"""Phases and steps of torch programs under `sonde run`, without a line changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import pytest
from conftest import PACKAGE, SONDE, Answer, environment, python

torch = pytest.importorskip("torch")
if hasattr(sys, "gettotalrefcount"):
    pytest.skip("too slow with a debug interpreter", allow_module_level=True)


def report_of(path):
    words = [str(SONDE), "report", str(path), "--json"]
    done = subprocess.run(words, capture_output=True, text=True, env=environment())
    return json.loads(done.stdout)


# ---- time goes where the program's own clock says ----

KNOWN = """
import json, time, torch, torch.nn as nn
from torch.utils.data import DataLoader, Dataset

clock, spent = time.perf_counter, {}
class timed:
    def __init__(self, phase): self.phase = phase
    def __enter__(self): self.start = clock()
    def __exit__(self, *_): spent[self.phase] = spent.get(self.phase, 0) + clock() - self.start

class Slow(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x.clone()
    @staticmethod
    def backward(ctx, g):
        time.sleep(0.004)
        return g

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 1)))
        time.sleep(0.05)
    def forward(self, x):
        time.sleep(0.003)
        return Slow.apply(self.inner(x))

class Data(Dataset):
    def __len__(self): return 40
    def __getitem__(self, i):
        time.sleep(0.001)
        return torch.ones(4), torch.ones(1)

class SlowSGD(torch.optim.SGD):
    def step(self, closure=None):
        time.sleep(0.005)
        return super().step(closure)

class Heavy:
    def __getstate__(self):
        time.sleep(0.05)
        return {"a": 1}

def slowly(things):
    for t in things:
        time.sleep(0.0006)
        yield t

torch.manual_seed(0)
torch.set_num_threads(1)
loss_fn = nn.MSELoss()
with timed("model_creation"):
    net = Net()
opt = SlowSGD(net.parameters(), lr=0.01)

def fetch(it):
    with timed("data_loading"):
        return next(it, None)

for epoch in range(2):
    net.train()
    it = iter(DataLoader(Data(), batch_size=4))
    while True:
        batch = fetch(it)
        if batch is None: break
        x, y = batch
        with timed("forward"):
            out = net(x)
        loss = loss_fn(out, y)
        with timed("backward"):
            loss.backward()
        with timed("gradient"):
            nn.utils.clip_grad_norm_(slowly(net.parameters()), 1.0)
        with timed("optimizer"):
            opt.step()
        opt.zero_grad()
    net.eval()
    with torch.no_grad():
        for x, y in [(torch.ones(4, 4), torch.ones(4, 1))] * 10:
            with timed("evaluation"):
                out = net(x)
            loss_fn(out, y)
    with timed("checkpoint"):
        torch.save(Heavy(), "heavy.pt")
print(json.dumps(spent))
"""


def seconds_of(answer, phase):
    """… without what is besides (the loss, zero_grad), with all that a fetch does."""
    besides = sum(
        o["self_s"]
        for o in answer["operations"]
        if o["phase"] == phase and o["name"] in ("MSELoss", "SlowSGD.zero_grad")
    )
    parts = [phase]
    if phase == "data_loading":
        parts += ["collate", "preprocessing", "augmentation"]
    return sum(map(answer.phase, parts)) - besides


def test_each_phase_is_within_two_percent_of_the_programs_own_clock(run, tmp_path):
    # On a busy machine something may come between the program's clock and the zone; what
    # is wrong in earnest is wrong each time.
    for _ in range(3):
        answer = run(f"import os; os.chdir({str(tmp_path)!r})\n" + KNOWN)
        truth = json.loads(answer.stdout)
        seen = {phase: seconds_of(answer, phase) for phase in truth}
        if seen == pytest.approx(truth, rel=0.02):
            break
    assert seen == pytest.approx(truth, rel=0.02)
    assert answer["summary"]["step_ms"]["count"] == 20
    assert answer["summary"]["optimizer_steps"] == 20
    assert [e["steps"] for e in answer["epochs"]] == [10, 10]
    assert [e["samples"] for e in answer["epochs"]] == [40, 40]
    assert answer.balanced()
    assert answer["model"]["name"] == "Net"
    assert answer["model"]["parameters"] == 25
    assert answer["model"]["layers"] == [{"type": "Linear", "count": 2}]
    assert answer["environment"]["torch"] == torch.__version__


def test_nested_modules_are_part_of_the_root(run):
    answer = run(
        """
        import torch.nn as nn, torch
        block = lambda: nn.Sequential(nn.Linear(3, 3), nn.ReLU())
        net = nn.Sequential(block(), block(), nn.Sequential(block()))
        for _ in range(7): net(torch.ones(1, 3))
        """
    )
    paths = answer.paths()
    forward = [o for o in answer["operations"] if o["phase"] == "forward"]
    assert [(o["name"], o["count"]) for o in forward] == [("Sequential", 7)]
    assert all(len(path) == 1 for path in paths)


# ---- what an evaluation fetches is the evaluation's ----

EVALUATIONS = {
    "no_grad": """
net.eval()
with torch.no_grad():
    for x in fetched(val, "evaluation"): net(x)
""",
    "inference_mode": """
with torch.inference_mode():
    for x in fetched(val, "evaluation"): net(x)
""",
    "eval and no_grad for each batch": """
net.eval()
for x in fetched(val, "evaluation"):
    with torch.no_grad(): net(x)
""",
    "one batch": """
net.eval()
for x in fetched(one, "evaluation"):
    with torch.no_grad(): net(x)
""",
    "decorated": """
@torch.no_grad()
def evaluate():
    net.eval()
    for x in fetched(val, "evaluation"): net(x)
evaluate()
""",
}
EVALUATING = """
import json, time, torch, torch.nn as nn
from torch.utils.data import DataLoader, Dataset
clock, spent = time.perf_counter, {"data_loading": 0, "evaluation": 0}
class Slow(Dataset):
    def __init__(self, n): self.n = n
    def __len__(self): return self.n
    def __getitem__(self, i):
        time.sleep(0.004)
        return torch.ones(4)
def fetched(loader, phase):
    it = iter(loader)
    while True:
        start = clock()
        x = next(it, None)
        spent[phase] += clock() - start
        if x is None: return
        yield x
torch.manual_seed(0)
torch.set_num_threads(1)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
training = DataLoader(Slow(24), 4, num_workers=WORKERS)
val, one = DataLoader(Slow(20), 5), DataLoader(Slow(6), 6)
for epoch in range(2):
    net.train()
    for x in fetched(training, "data_loading"):
        opt.zero_grad(); net(x).sum().backward(); opt.step()
    EVALUATE
print(json.dumps(spent))
"""


@pytest.mark.parametrize("kind", EVALUATIONS)
def test_what_an_evaluation_fetches_is_the_evaluations(run, kind):
    body = EVALUATIONS[kind].strip().replace("\n", "\n    ")
    workers = "1" if kind == "no_grad" else "0"
    program = EVALUATING.replace("EVALUATE", body).replace("WORKERS", workers)
    answer = run(program)
    truth = json.loads(answer.stdout)
    input_s = sum(
        map(answer.phase, ("data_loading", "collate", "preprocessing", "augmentation"))
    )
    assert input_s == pytest.approx(truth["data_loading"], rel=0.02, abs=0.02)
    # The calls of the model are in it too.
    assert truth["evaluation"] * 0.98 <= answer.phase("evaluation")
    assert answer.phase("evaluation") <= truth["evaluation"] * 1.02 + 0.05
    assert answer["summary"]["step_ms"]["count"] == 12
    assert [e["steps"] for e in answer["epochs"]] == [6, 6]
    loaders = {x["dataset_length"]: x["training"] for x in answer["loaders"]}
    assert loaders == {24: True, 6 if kind == "one batch" else 20: False}


EVALUATES = """
import time, torch, torch.nn as nn
from torch.utils.data import DataLoader

class Net(nn.Linear):
    def forward(self, x):
        if not self.training: time.sleep(0.004)
        return super().forward(x)

net = Net(4, 1)
optimizer = torch.optim.SGD(net.parameters(), 0.01)

@torch.no_grad()
def validate(loader):
    net.eval()
    total = 0.0
    for x in loader:
        total += net(x).sum().item()  # HERE
    net.train()
    return total

for x in DataLoader(torch.ones(24, 4), batch_size=1):
    optimizer.zero_grad(); net(x).sum().backward(); optimizer.step()
    net.eval()
    with torch.no_grad(): net(x)
    net.train()
    validate(DataLoader(torch.ones(8, 4), batch_size=1))
"""


def test_an_evaluation_is_named_by_its_line(run):
    answer = run(EVALUATES)
    here = EVALUATES[: EVALUATES.index("# HERE")].count("\n") + 1
    evaluated = [o for o in answer["operations"] if o["phase"] == "evaluation" and o["file"]]
    assert {(o["line"], o["count"]) for o in evaluated} == {(here, 192), (here + 7, 24)}
    (found,) = [b for b in answer["bottlenecks"] if b["id"] == "evaluation_heavy"]
    assert found["place"].endswith(f":{here}") and f":{here}." in found["description"]


def test_a_program_that_only_infers_waits_for_its_data(run):
    answer = run(
        """
        import time, torch, torch.nn as nn
        from torch.utils.data import DataLoader, Dataset
        class Slow(Dataset):
            def __len__(self): return 8
            def __getitem__(self, i):
                time.sleep(0.02)
                return torch.ones(4)
        net = nn.Linear(4, 1).eval()
        with torch.no_grad():
            for x in DataLoader(Slow(), 2): net(x)
        """
    )
    assert answer.phase("data_loading") > 0.15 > answer.phase("evaluation")
    assert answer["summary"]["step_ms"]["count"] in (None, 0)


def test_programs_that_tell_their_steps_have_a_training_loader(run):
    answer = run(
        """
        import sonde, torch, torch.nn as nn
        from torch.utils.data import DataLoader, TensorDataset
        net = nn.Linear(4, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        data = TensorDataset(torch.ones(24, 4))
        val = DataLoader(data, 12)
        for (x,) in DataLoader(data, 4):
            sonde.step(samples=4)
            opt.zero_grad(); net(x).sum().backward(); opt.step()
            with torch.no_grad():
                for (v,) in val: net(v)
        """
    )
    loaders = {x["batch_size"]: x["training"] for x in answer["loaders"]}
    assert loaders == {4: True, 12: False}
    assert answer["summary"]["step_ms"]["count"] == 5


# ---- NVTX where there is no card ----

NVTX = """
import torch, traceback
nvtx = torch.cuda.nvtx
def attempt(function, *args):
    try: print(function(*args))
    except Exception as error:
        print(type(error).__name__, error, [f.name for f in traceback.extract_tb(error.__traceback__)])
attempt(nvtx.range_push, "never began")
attempt(nvtx.range_pop)
def scope():
    with nvtx.range("never began either"): pass
attempt(scope)
attempt(nvtx.mark, "m")
class Works:
    rangePushA = staticmethod(lambda name: 0)
    rangePop = staticmethod(lambda: 0)
nvtx._nvtx = Works()
nvtx.range_push("outer"); nvtx.range_push("inner"); nvtx.range_pop(); nvtx.range_pop()
nvtx.range_pop()  # one too many, which NVTX forgives
"""


def test_nvtx_ranges_without_a_card_fail_as_they_would(run):
    answer = run(NVTX)
    alone = python("-c", NVTX)
    assert answer.stdout == alone.stdout
    names = [path[-1] for path in answer.paths()]
    assert "outer" in names and "inner" in names
    assert not any("never" in name for name in names)
    assert answer.balanced()


# ---- steps of many kinds of programs ----

HEAD = """
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset, IterableDataset
torch.manual_seed(0)
torch.set_num_threads(1)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
data = TensorDataset(torch.randn(24, 4), torch.randn(24, 1))
def train(batch, step=True):
    loss = F.mse_loss(net(batch[0]), batch[1])
    loss.backward()
    if step:
        opt.step(); opt.zero_grad()
"""

KINDS = {
    "plain": ("for e in range(3):\n    for b in DataLoader(data, 4): train(b)", 18, 18),
    "accumulation": (
        "for i, b in enumerate(DataLoader(data, 2)): train(b, i % 4 == 3)", 12, 3,
    ),
    "evaluation between": (
        """
for e in range(2):
    net.train()
    for b in DataLoader(data, 4): train(b)
    net.eval()
    with torch.no_grad():
        for b in DataLoader(data, 8): net(b[0])
""", 12, 12,
    ),
    "evaluation first": (
        """
with torch.no_grad():
    for b in DataLoader(data, 8): net(b[0])
for b in DataLoader(data, 4): train(b)
""", 6, 6,
    ),
    "evaluation inside": (
        """
val = DataLoader(data, 8)
for i, b in enumerate(DataLoader(data, 4)):
    train(b)
    if i % 2:
        net.eval()
        with torch.no_grad():
            for v in val: net(v[0])
        net.train()
""", 6, 6,
    ),
    "no loader": (
        "for i in range(10): train((torch.randn(4, 4), torch.randn(4, 1)))", 9, 10,
    ),
    "one batch for ever": (
        "b = next(iter(DataLoader(data, 4)))\nfor i in range(30): train(b)", None, 30,
    ),
    "left early": (
        """
for e in range(3):
    for i, b in enumerate(DataLoader(data, 2)):
        train(b)
        if i == 4: break
""", 15, 15,
    ),
    "iterable": (
        """
class Stream(IterableDataset):
    def __iter__(self):
        for x, y in data: yield x, y
for b in DataLoader(Stream(), 6): train(b)
""", 4, 4,
    ),
    "two optimizers without a loader": (
        """
other = nn.Linear(4, 4)
opt2 = torch.optim.SGD(other.parameters(), lr=0.1)
for i in range(8):
    train((torch.randn(4, 4), torch.randn(4, 1)))
    for _ in range(3):
        other(torch.randn(2, 4)).sum().backward(); opt2.step()
""", 7, 32,
    ),
    "gan": (
        """
D = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
G = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 4))
d_opt = torch.optim.Adam(D.parameters()); g_opt = torch.optim.Adam(G.parameters())
for real, _ in DataLoader(data, 4):
    d_opt.zero_grad()
    (D(real).mean() - D(G(torch.randn(4, 2)).detach()).mean()).backward(); d_opt.step()
    g_opt.zero_grad(); (-D(G(torch.randn(4, 2))).mean()).backward(); g_opt.step()
""", 6, 12,
    ),
    "two loaders in step": (
        "for a, b in zip(DataLoader(data, 4), DataLoader(data, 4)): train(a); train(b)", 6, 12,
    ),
    "closure": (
        """
lbfgs = torch.optim.LBFGS(net.parameters(), max_iter=2)
for x, y in DataLoader(data, 4):
    def closure():
        lbfgs.zero_grad(); loss = F.mse_loss(net(x), y); loss.backward(); return loss
    lbfgs.step(closure)
""", 6, 6,
    ),
    "told by the program": (
        "import sonde\nfor e in range(2):\n    for b in DataLoader(data, 4):\n"
        "        sonde.step(samples=4); train(b)", 11, 12,
    ),
    "workers": ("for b in DataLoader(data, 4, num_workers=2): train(b)", 6, 6),
}


# Each in a child of its own, so that torch is imported once.
EACH = """
import json, os, sys, torch, torch.utils.data
pids = {}
for name, body in json.load(open(sys.argv[1])).items():
    pid = os.fork()
    if pid == 0:
        try:
            exec(compile(body, name, "exec"), {"__name__": "__main__"})
            os._exit(0)
        except BaseException:
            import traceback; traceback.print_exc()
            os._exit(1)
    pids[name] = [pid, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])]
print(json.dumps(pids))
"""


@pytest.fixture(scope="module")
def each_kind(tmp_path_factory):
    """name -> report of the process that ran this kind of program."""
    folder = tmp_path_factory.mktemp("kinds")
    (folder / "each.py").write_text(EACH)
    bodies = {name: HEAD + body for name, (body, _, _) in KINDS.items()}
    (folder / "bodies.json").write_text(json.dumps(bodies))
    words = [SONDE, "run", "-q", "-o", folder / "run", "--", sys.executable]
    words += [folder / "each.py", folder / "bodies.json"]
    env = environment(SONDE_PYTHON_LAYER=PACKAGE / "sonde" / "_site")
    done = subprocess.run(
        list(map(str, words)), capture_output=True, text=True, env=env, timeout=120
    )
    answers = {}
    for name, (pid, status) in json.loads(done.stdout).items():
        assert status == 0, done.stderr
        trace = next((folder / "run").glob(f"*-{pid}-*.sonde"))
        answers[name] = Answer(report_of(trace))
    assert "problem" not in (folder / "run" / "python.jsonl").read_text()
    return answers


@pytest.mark.parametrize("kind", KINDS)
def test_steps_are_counted_as_a_person_would(each_kind, kind):
    _, steps, optimizer_steps = KINDS[kind]
    answer = each_kind[kind]
    summary = answer["summary"]
    if steps is not None:
        assert summary["step_ms"]["count"] == steps
    else:
        assert 15 <= summary["step_ms"]["count"] <= 29
    assert summary["optimizer_steps"] == optimizer_steps
    assert answer.balanced()


def test_samples_per_second_come_from_the_batches(run):
    answer = run(HEAD + "for e in range(4):\n    for b in DataLoader(data, 8): train(b)")
    rate = 8 * answer["summary"]["steps_per_s"]
    assert answer["summary"]["samples_per_s"] == pytest.approx(rate, rel=1e-3)


# ---- ranges ----


def test_ranges_of_the_program_become_zones(run):
    answer = run(
        """
        import torch
        from torch.profiler import record_function
        @record_function("decorated")
        def f(): return torch.ones(2).sum()
        @torch.jit.script
        def scripted(x):
            with torch.autograd.profiler.record_function("in a script"):
                return x + 1
        for i in range(5):
            with record_function("outer"):
                with torch.autograd.profiler.record_function("inner"): f()
        try:
            with record_function("left by an exception"): raise KeyError
        except KeyError: pass
        assert scripted(torch.ones(1)).item() == 2
        """
    )
    paths = answer.paths()
    assert paths[("outer",)] == paths[("outer", "inner")] == 5
    assert paths[("outer", "inner", "decorated")] == 5
    assert paths[("left by an exception",)] == 1
    assert answer.balanced()


# ---- nothing changes ----


def both(tmp_path, script, run):
    """What the script prints without Sonde and with it; stderr too."""
    file = tmp_path / "prog.py"
    file.write_text(textwrap.dedent(script))
    env = environment()
    bare = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, env=env
    )
    words = [SONDE, "run", "-q", "-o", tmp_path / "both", "--", sys.executable, file]
    done = subprocess.run(
        list(map(str, words)),
        capture_output=True,
        text=True,
        env=environment(SONDE_PYTHON_LAYER=PACKAGE / "sonde" / "_site"),
    )
    return bare, done


def test_results_are_the_same_bit_for_bit(run, tmp_path):
    script = HEAD + """
import hashlib
net = nn.Sequential(nn.Linear(4, 16), nn.Dropout(0.3), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for e in range(3):
    for b in DataLoader(data, 4, shuffle=True, num_workers=e % 2): train(b)
print(hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in net.parameters())).hexdigest())
print(torch.rand(3), torch.initial_seed())
"""
    bare, done = both(tmp_path, script, run)
    assert done.stdout == bare.stdout and len(done.stdout) > 64
    assert done.stderr == bare.stderr


ABI3 = PACKAGE.name.endswith("abi3")
FAILURES = {
    "forward": "net(torch.ones(2, 3))",
    "forward of a class": """
class Bad(nn.Module):
    def forward(self, x): raise ValueError("mine")
class Outer(nn.Module):
    def __init__(self): super().__init__(); self.bad = Bad()
    def forward(self, x): return self.bad(x)
Outer()(1)
""",
    "construction": "nn.Linear(-1, 'x')",
    "construction of a class": """
class Bad(nn.Module):
    def __init__(self): super().__init__(); raise ValueError("mine")
Bad()
""",
    "class keywords": "class M(nn.Module, wrong=1): pass",
    "backward": "l = net(torch.ones(2, 4)).sum(); l.backward(); l.backward()",
    "backward of a function": """
class F2(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * 2
    @staticmethod
    def backward(ctx, g): raise ValueError("mine")
F2.apply(torch.ones(2, requires_grad=True)).sum().backward()
""",
    "optimizer": """
class Bad(torch.optim.SGD):
    def step(self, closure=None): raise ValueError("mine")
Bad(net.parameters(), lr=0.1).step()
""",
    "optimizer's construction": "torch.optim.SGD([], lr=0.1)",
    "data set": """
class Bad(torch.utils.data.Dataset):
    def __len__(self): return 4
    def __getitem__(self, i): raise ValueError("mine")
for b in DataLoader(Bad(), 2): pass
""",
    "collate": "next(iter(DataLoader([1, 'a', None], 3)))",
    "clipping": "nn.utils.clip_grad_norm_(5, 1.0)",
    "saving": "torch.save(1, '/nowhere/x.pt')",
    "a range": "with torch.profiler.record_function(5): pass",
}
if ABI3:  # there code of ours stands in the methods of ranges
    del FAILURES["a range"]


def test_tracebacks_are_the_same(run, tmp_path):
    script = HEAD + f"FAILURES = {FAILURES!r}" + """
import traceback
for name, body in FAILURES.items():
    try:
        exec(compile(body, name, "exec"))
        print(name, "did not fail")
    except Exception:
        print(name, traceback.format_exc())
exec(FAILURES["forward"])
"""
    bare, done = both(tmp_path, script, run)
    assert bare.returncode == 1 and "did not fail" not in bare.stdout
    told, expected = done.stdout.split("\n\n"), bare.stdout.split("\n\n")
    for one, other in zip(told, expected):
        assert one == other
    assert (done.returncode, done.stderr) == (1, bare.stderr)


UNNOTICED = HEAD + """
import copy, gc, inspect, io, pickle, weakref
from torch.nn.utils import clip_grad_norm_

class Net(nn.Module):
    def __init__(self, n: int = 4):
        super().__init__()
        self.a = nn.Linear(n, n)
        self.b = nn.Sequential(nn.ReLU(), nn.Linear(n, 1))
    def forward(self, x):
        return self.b(self.a(x))

net = Net()
opt = torch.optim.Adam(net.parameters())
x = torch.ones(2, 4)
net(x).sum().backward(); opt.step()
for f in (torch.save, clip_grad_norm_, torch.Tensor.backward, torch.autograd.backward,
          torch.optim.SGD.step, nn.Module.__call__, nn.Module.__init__, Net.__init__,
          torch.autograd.profiler.record_function.__enter__):
    print(f.__name__, f.__module__, inspect.signature(f), inspect.isfunction(f),
          len(inspect.getsource(f)), f.__qualname__)
    print("<locals>" in f.__qualname__ or pickle.loads(pickle.dumps(f)) is f)
print(sorted(vars(net)), sorted(vars(Net)), type(net), type(opt), Net.__mro__)
print(net._forward_hooks, net._forward_pre_hooks, Net.__call__ is nn.Module.__call__)
load = torch.load if torch.__version__ < '2' else lambda f: torch.load(f, weights_only=False)
buffer = io.BytesIO(); torch.save(net, buffer); buffer.seek(0)
print(buffer.getbuffer().nbytes, torch.equal(load(buffer)(x), net(x)))
again = copy.deepcopy(net); print(torch.equal(again(x), net(x)), type(again) is Net)
print(b'sonde' in pickle.dumps(opt) + pickle.dumps(net), pickle.loads(pickle.dumps(opt)))
traced = torch.jit.trace(net, x); print(torch.equal(traced(x), net(x)), traced.code)
scripted = torch.jit.script(net); print(torch.equal(scripted(x), net(x)), scripted.code)
print(torch.fx.symbolic_trace(net).code)
w = weakref.ref(net); del net, traced, scripted; opt = None; gc.collect(); print(w() is None)
w = weakref.ref(Net); del Net, again; buffer = None; gc.collect()
engine = torch.autograd.Variable._execution_engine
print(type(engine).__name__, isinstance(engine, torch._C._ImperativeEngine))
lin = nn.Linear(2, 2); print(torch.equal(lin.forward(torch.ones(2)), lin(torch.ones(2))))
"""


@pytest.mark.skipif(ABI3, reason="something stands in the place of functions there")
def test_programs_that_look_closely_see_nothing(run, tmp_path):
    bare, done = both(tmp_path, UNNOTICED, run)
    assert bare.returncode == 0, bare.stderr
    assert done.stdout == bare.stdout
    assert done.stderr == bare.stderr


def test_a_problem_of_ours_is_told_and_does_no_harm(run, tmp_path):
    """Half of torch is missing: what can be watched is, the rest is in the report."""
    package = tmp_path / "torch"
    package.mkdir()
    (package / "__init__.py").write_text("__version__ = '9.9'\n")
    env = os.pathsep.join([str(tmp_path), environment()["PYTHONPATH"]])
    answer = run("import torch; print(torch.__version__)", PYTHONPATH=env)
    assert answer.stdout == "9.9\n"
    method = next(
        p["method"] for p in answer["provenance"] if p["metric"] == "python.layer"
    )
    assert "problem" in method
