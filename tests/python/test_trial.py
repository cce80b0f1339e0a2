"""What a trial leaves out (sonde/_trial), each way of it on its own."""

from __future__ import annotations

import gc
import json
import os
import time
import types

import conftest  # noqa: F401  puts the package on the path
import pytest

from sonde._trial import collector, intercept, memo, steps
from sonde._trial import lengths as lengths_


class Course:
    """As much of a trial as an ablation needs."""

    def __init__(self, **spec):
        self.spec, self.step, self.looks, self.parts = spec, 0, [], []
        self.whole = False

    past_start = True

    def part(self, name):
        self.parts.append(steps.Part(name))
        return self.parts[-1]


# ---- in front of functions ----


def plain(a, b=2, *rest, c=3, **more):
    return (a, b, rest, c, more)


def outer(x):
    def inner(y):
        return x + y

    return inner


class Kind:
    def __init__(self):
        self.n = 1

    def method(self, k=1):
        return self.n + k

    @property
    def twice(self):
        return 2 * self.n


class Below(Kind):
    def method(self, k=1):
        return super().method(k) + 100  # has __class__ in its closure


@pytest.mark.parametrize(
    "function, call",
    [
        (plain, lambda f: f(1, c=9, z=4)),
        (Kind.method, lambda f: Kind().method(5)),
        (Below.method, lambda f: Below().method()),
        (Kind.twice.fget, lambda f: Kind().twice),
    ],
)
def test_a_handler_stands_in_front_of_a_function_and_leaves(function, call):
    before = call(function)
    seen = []

    def handler(original, args, kwargs):
        seen.append(args)
        return original(*args, **kwargs)

    code = function.__code__
    standing = intercept.Standing(code, handler)
    assert standing
    assert call(function) == before
    assert len(seen) >= 1
    standing.leave()
    assert function.__code__ is code
    assert call(function) == before
    assert len(seen) == 1


def test_a_closure_keeps_what_it_closes_over():
    f = outer(10)
    standing = intercept.Standing(f.__code__, lambda o, a, k: -o(*a, **k))
    assert f(5) == -15
    standing.leave()
    assert f(5) == 15


def test_an_exception_goes_through():
    def fails():
        raise KeyError("mine")

    assert intercept.Standing(fails.__code__, lambda o, a, k: o(*a, **k))
    with pytest.raises(KeyError, match="mine"):
        fails()


def test_nobody_stands_in_front_of_generators_and_coroutines():
    def many():
        yield 1

    async def later():
        return 1

    for f in (many, later):
        assert not intercept.Standing(f.__code__, lambda o, a, k: None)
    assert list(many()) == [1]


def test_a_place_is_found_by_file_line_and_name():
    line = plain.__code__.co_firstlineno + 1
    name = os.path.basename(__file__)
    assert intercept.find(f"{name}:{line} in plain") is plain.__code__
    assert intercept.find(f"{name}:{line} in other") is None
    assert intercept.find(f"nobody.py:{line} in plain") is None
    for nonsense in ("", ":", "x.py", "x.py:y in z", " in ", "x.py:99999999999 in z"):
        assert intercept.find(nonsense) is None


def test_a_stack_names_what_stands_behind_a_stub():
    import sys

    def caller():
        return intercept.codes_of(sys._getframe())

    code = caller.__code__
    intercept.Standing(code, lambda o, a, k: o(*a, **k))
    assert caller().count(code) == 2  # the stub, and the function itself


# ---- what is kept ----


def slow(n):
    time.sleep(0.004)
    return [n]


def test_results_are_handed_out_again_after_the_part_of_their_time_that_is_left():
    kept = memo.Memo(0.25, calls=8)
    first = [kept.call(slow, n) for n in range(8)]
    assert first == [[n] for n in range(8)]
    assert kept.ready
    start = time.perf_counter()
    again = [kept.call(slow, 99) for _ in range(20)]
    took = (time.perf_counter() - start) / 20
    assert all(a in first for a in again)
    asked = [sum(w) for w in kept.waits]
    took_first = [wall for wall, _, _ in kept.kept]
    assert asked == pytest.approx([0.25 * w for w in took_first], abs=2)
    assert took >= 0.9e-9 * min(asked)  # a machine with others on it takes longer


def test_what_costs_nothing_still_costs_the_least_it_may():
    kept = memo.Memo(0.0, least_ns=500_000, calls=4)
    for n in range(4):
        kept.call(slow, n)
    assert all(sum(w) == pytest.approx(500_000, abs=2) for w in kept.waits)
    start = time.perf_counter()
    for _ in range(10):
        kept.call(slow, 0)
    assert time.perf_counter() - start > 0.0045


def test_the_least_is_never_more_than_it_took():
    kept = memo.Memo(0.0, least_ns=50_000_000, calls=4)
    for _ in range(4):
        kept.call(lambda: 1)
    assert all(sum(w) <= wall for w, (wall, _, _) in zip(kept.waits, kept.kept))


def test_slow_ones_become_like_the_others():
    kept = memo.Memo(1.0, even=True, calls=12)

    def uneven(n):
        time.sleep(0.2 if n == 7 else 0.002)
        return n

    for n in range(12):
        kept.call(uneven, n)
    given = {kept.call(uneven, 0) for _ in range(30)}
    assert 7 not in given
    assert len(given) > 3


def test_containers_are_new_each_time_and_tensors_where_they_are_changed():
    kept = memo.Memo(0.0, calls=3)
    for _ in range(3):
        kept.call(lambda: {"a": [1, 2]})
    one = kept.call(dict)
    one["a"].append(3)
    one.pop("a")
    assert all(kept.call(dict) == {"a": [1, 2]} for _ in range(4))


def test_workers_share_what_the_first_one_kept(tmp_path):
    file = str(tmp_path / "kept")
    first = memo.Memo(0.0, calls=4, file=file)
    for n in range(4):
        first.call(slow, n)
    assert os.path.exists(file)
    second = memo.Memo(0.0, calls=4, file=file)
    assert second.call(slow, 77) in [[n] for n in range(4)]
    assert second.ready


def test_a_damaged_file_between_workers_is_left_alone(tmp_path):
    file = tmp_path / "kept"
    file.write_bytes(b"\x80no pickle")
    kept = memo.Memo(0.0, calls=3, file=str(file))
    assert kept.call(slow, 5) == [5]


# ---- the collector ----


@pytest.fixture
def untouched_collector():
    collect, set_threshold, threshold = gc.collect, gc.set_threshold, gc.get_threshold()
    yield
    gc.collect, gc.set_threshold = collect, set_threshold
    gc.set_threshold(*threshold)
    gc.unfreeze()


def test_every_kth_collection_is_done(untouched_collector, monkeypatch):
    done = []
    monkeypatch.setattr(collector, "_collect", lambda *a: done.append(1) or 5)
    course = Course(gc={"times": 10})
    collector.install(course)
    answers = [gc.collect() for _ in range(40)]
    assert len(done) == 4
    assert answers.count(5) == 4 and answers.count(0) == 36


def test_a_collector_that_runs_by_itself_runs_more_seldom(untouched_collector):
    course = Course(gc={"times": 10})
    before = gc.get_threshold()[0]
    collector.install(course)
    course.step = 10
    for look in course.looks:
        look()
    assert gc.get_threshold()[0] == 10 * before
    assert course.parts[0].settled


# ---- rarer ----


def rare(times, course=None):
    from sonde._trial import seldom

    course = course or Course()
    training = types.SimpleNamespace(
        enough=True,
        chain=lambda frame: [acts.__code__],
        owner=lambda frame: "main()",
    )
    return course, seldom._Rare(course, training, {"what": "checkpoint", "times": times})


acted = []


def acts(step=0, every=1, one=None):
    if step % every == 0:
        acted.append(step)
        one.event(None)
        return f"saved {step}"
    return None


@pytest.fixture
def acting():
    code = acts.__code__
    acted.clear()
    yield
    acts.__code__ = code


def test_a_function_that_acts_at_each_call_is_left_out_but_for_every_kth(acting):
    course, one = rare(10)
    for course.step in range(1, 103):
        answer = acts(course.step, 1, one)
        assert answer is not None
    assert one.part.settled
    # Two while it was found out, then a tenth.
    assert len(acted) == 12
    assert one.part.told["seen"] == 102 and one.part.told["kept"] == 12


def test_a_function_that_acts_every_fifth_call_goes_on_to_be_called(acting):
    course, one = rare(4)
    for course.step in range(1, 101):
        acts(course.step, 5, one)
    assert one.period == 5
    assert acted[:3] == [5, 10, 15]
    assert len(acted) == 3 + 17 // 4
    assert one.part.told["seen"] == 20


def test_what_is_part_of_the_loop_says_so(acting):
    course, one = rare(10)
    one.training.chain = lambda frame: []
    course.step = 1
    one.event(None)
    assert one.part.why == "it is part of main()"
    assert not one.part.settled


def test_what_never_comes_in_the_first_steps_is_not_waited_for():
    course, one = rare(10)
    course.step = 39
    one.none_came()
    assert not one.part.settled
    course.step = 40
    one.none_came()
    assert one.part.settled and not one.part.why


# ---- the course ----


def course_in(tmp_path, **spec):
    return steps.Course(
        {"scratch": str(tmp_path), "outcome": str(tmp_path / "outcome"), **spec}
    )


@pytest.fixture
def recorder(monkeypatch):
    """What the course does to the recorder and the process, in order."""
    done = []
    monkeypatch.setattr(steps._sonde, "resume", lambda: done.append("resume"))
    monkeypatch.setattr(steps._sonde, "steps_told", lambda f: done.append("told"))
    monkeypatch.setattr(steps.atexit, "register", lambda f: None)

    def leave(status):
        done.append("exit")
        raise SystemExit(status)

    monkeypatch.setattr(steps.os, "_exit", leave)
    return done


def test_steps_are_measured_when_all_is_in_effect_and_warm(tmp_path, recorder):
    course = course_in(tmp_path, steps=20, warmup=5)
    part = course.part("gc")
    for _ in range(10):
        course.begins()
    assert not recorder  # not in effect yet
    part.settled = True
    with pytest.raises(SystemExit):
        for _ in range(100):
            course.begins()
    assert recorder == ["resume", "exit"]
    assert course.from_step == 16
    outcome = json.loads((tmp_path / "outcome").read_text())
    assert outcome["ended"] == "steps"
    assert outcome["steps"] - outcome["from_step"] == 22  # one open, one to end on


def test_a_step_that_was_none_does_not_count(tmp_path, recorder):
    course = course_in(tmp_path, steps=20, warmup=5)
    for _ in range(5):
        course.begins(1)
    course.begins(-1)  # the loader was at its end
    assert course.step == 4
    course.begins(1)
    assert course.step == 5


def test_short_steps_are_measured_for_a_while(tmp_path, recorder, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(steps.time, "monotonic", lambda: clock[0])
    course = course_in(tmp_path, steps=20, warmup=5, least_s=2)
    with pytest.raises(SystemExit):
        for _ in range(1000):
            clock[0] += 0.01
            course.begins()
    assert course.step - course.from_step == 200


def test_the_program_does_not_come_to_its_own_end(tmp_path, recorder):
    course = course_in(tmp_path, steps=20, warmup=5, least_s=100, last=60)
    with pytest.raises(SystemExit):
        for _ in range(60):
            course.begins()
    assert course.step == 60


def test_what_cannot_be_applied_ends_the_trial_with_the_reason(tmp_path, recorder):
    course = course_in(tmp_path)
    course.part("evaluation").why = "it is part of main()"
    with pytest.raises(SystemExit):
        course.begins()
    outcome = json.loads((tmp_path / "outcome").read_text())
    assert outcome["ended"] == "failed"
    assert outcome["parts"][0]["why"] == "it is part of main()"


def test_what_is_never_seen_ends_the_trial(tmp_path, recorder):
    course = course_in(tmp_path)
    course.part("evaluation")
    with pytest.raises(SystemExit):
        for _ in range(1000):
            course.begins()
    assert "nothing of it was seen" in (tmp_path / "outcome").read_text()


def test_of_several_interpreters_one_is_measured(tmp_path, recorder):
    first, second = course_in(tmp_path), course_in(tmp_path)
    for _ in range(5):
        first.begins()
        second.begins()
    assert first.step == 5 and second.step == 0


# ---- torch ----


def test_a_trial_without_a_spec_does_nothing():
    from sonde import _trial

    _trial.start()
    assert _trial.course is None


def test_a_spec_that_is_none_is_told_and_the_program_runs(run, tmp_path):
    spec = tmp_path / "spec.json"
    for text in ("", "[]", "{}", '{"scratch": 3}', json.dumps({"scratch": "x" * 70000})):
        spec.write_text(text)
        assert run("print('ran')", SONDE_TRIAL=spec).stdout.strip() == "ran"


# ---- batches of one length ----


class Array:
    def __init__(self, *shape):
        self.shape = shape


@pytest.mark.parametrize(
    "samples, lengths",
    [
        ([Array(3, 40), Array(3, 7)], [40, 7]),
        ([(Array(9), 1), (Array(4), 0)], [9, 4]),
        ([{"ids": [1, 2, 3], "label": 1}, {"ids": [5], "label": 0}], [3, 1]),
        # The longest that differs: 80 mel bands by frames, and a few words.
        ([(Array(80, 500), "ab"), (Array(80, 30), "abcd")], [500, 30]),
        ([("a" * 30, 1), ("b" * 4, 2)], [30, 4]),
        ([[Array(2), Array(2), Array(2)], [Array(2)]], [3, 1]),
        ([types.SimpleNamespace(x=Array(5, 2)), types.SimpleNamespace(x=Array(8, 2))], [5, 8]),
    ],
)
def test_a_sample_is_as_long_as_what_differs_most(samples, lengths):
    assert lengths_.lengths_of([lengths_.shape_of(s) for s in samples]) == lengths


@pytest.mark.parametrize("samples", [[Array(4), Array(4)], [1, 2], [object()] * 2, []])
def test_samples_of_one_length_have_none(samples):
    assert lengths_.lengths_of([lengths_.shape_of(s) for s in samples]) is None


class Loader:
    num_workers, prefetch_factor, _dataset_kind = 0, 2, 0

    def __init__(self, lengths, size):
        self.dataset = [[0] * n for n in lengths]
        order = list(range(len(lengths)))
        self.batch_sampler = [order[i : i + size] for i in range(0, len(order), size)]


def sorted_batches(loader, wanted=1000, **spec):
    course = Course(lengths=1, **spec)
    course.wanted, course.warmup = wanted, 0
    part = course.part("lengths")
    lengths_.install(course, part, loader, False)
    return part, list(loader.batch_sampler)


def test_batches_have_the_same_samples_in_batches_of_one_length():
    lengths = [(n * 7919) % 400 + 1 for n in range(203)]
    loader = Loader(lengths, 8)
    part, batches = sorted_batches(loader)
    assert part.settled and not part.why
    assert sorted(i for b in batches for i in b) == list(range(203))
    assert sorted(map(len, batches)) == [3] + [8] * 25
    waste = sum(max(lengths[i] for i in b) * len(b) for b in batches) / sum(lengths)
    assert waste < 1.1
    # Short and long ones come in turns: half of them are as long as all.
    means = [sum(lengths[i] for i in b) / len(b) for b in batches]
    for at in (0, 5, 13):
        part_of = means[at : at + 13]
        assert sum(part_of) / 13 == pytest.approx(sum(means) / 26, rel=0.15)
    assert means != sorted(means)


def test_only_what_a_trial_needs_is_asked_for():
    loader = Loader([5, 9] * 500, 2)
    asked = []

    class Asked(list):
        def __getitem__(self, i):
            asked.append(i)
            return super().__getitem__(i)

    loader.dataset = Asked(loader.dataset)
    course = Course(lengths=1)
    course.wanted, course.warmup = 20, 10
    lengths_.install(course, course.part("lengths"), loader, False)
    batches = iter(loader.batch_sampler)
    first = [next(batches) for _ in range(30)]
    assert len(asked) == 2 * (20 + 10 + 16)
    assert all(i < 92 for b in first for i in b)


def test_a_data_set_that_answers_slowly_is_not_waited_for():
    class Slow(list):
        def __getitem__(self, i):
            time.sleep(0.02)
            return super().__getitem__(i)

    loader = Loader([5, 9] * 500, 2)
    loader.dataset = Slow(loader.dataset)
    part, batches = sorted_batches(loader, seconds=0.5)
    assert "takes too long" in part.why and not part.settled
    assert batches[:2] == [[0, 1], [2, 3]]  # as they were


def test_what_is_no_loader_of_single_samples_is_refused():
    def why(own=False, **changes):
        loader = Loader([1, 2], 1)
        for name, value in changes.items():
            setattr(loader, name, value)
        course = Course()
        part = course.part("lengths")
        lengths_.install(course, part, loader, own)
        return part.why

    assert "read in order" in why(_dataset_kind=1)
    assert "sampler of the program's own" in why(own=True)
    assert "not put together by the loader" in why(batch_sampler=None)
    part, _ = sorted_batches(Loader([4] * 20, 4))
    assert part.why == "its samples do not differ in length"


# ---- doubles ----

DOUBLES = """
import json, os, random, sys
sys.path.insert(0, {package!r})
import numpy, torch
from sonde._trial import precision, steps

class Course:
    spec, step, looks, parts, past_start = {{"precision": 1}}, 0, [], [], True
    def part(self, name):
        self.parts.append(steps.Part(name))
        return self.parts[-1]

course = Course()
precision.torch_came(course, torch)

def train(net, x, steps=8):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for course.step in range(1, steps):
        for look in course.looks:
            look()
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()
    part = course.parts[0]
    print(json.dumps([part.settled, part.why]))

{text}
"""


@pytest.fixture
def doubles(tmp_path):
    """A program whose doubles become floats: whether that settled, and why not."""
    torch_python = has_torch()
    if not torch_python:
        pytest.skip("no torch here")

    def go(text):
        file = tmp_path / "program.py"
        package = str(conftest.PACKAGE)
        file.write_text(DOUBLES.format(package=package, text=text))
        lines = conftest.python(file).stdout.splitlines()
        return [json.loads(line) for line in lines]

    return go


def has_torch():
    import importlib.util

    return not conftest.DEBUG and importlib.util.find_spec("torch") is not None


@pytest.mark.parametrize(
    "made",
    [
        "torch.nn.Linear(4, 2).double(), torch.ones(3, 4).double()",
        "torch.nn.Linear(4, 2, dtype=torch.float64), torch.ones(3, 4, dtype=torch.double)",
        "torch.nn.Linear(4, 2).to(torch.float64), torch.from_numpy(numpy.ones((3, 4)))",
        "torch.nn.Linear(4, 2).type('torch.DoubleTensor'), torch.tensor(numpy.ones((3, 4)))",
        "torch.nn.Linear(4, 2).double(), torch.as_tensor(numpy.ones((3, 4)))",
        "torch.nn.Linear(4, 2).double(), torch.ones(3, 4).type(torch.DoubleTensor)",
    ],
)
def test_whoever_asks_for_doubles_computes_in_floats(doubles, made):
    dtypes, end = doubles(
        f"net, x = {made}\n"
        "print(json.dumps([str(p.dtype) for p in net.parameters()] + [str(x.dtype)]))\n"
        "assert all(p.dtype == torch.float64 for p in net.parameters())\n"
        "train(net, x)\n"
    )
    assert set(dtypes) == {"torch.float32"}
    assert end == [True, ""]


def test_a_default_of_doubles_is_one_of_floats(doubles):
    assert doubles(
        "torch.set_default_dtype(torch.float64)\n"
        "print(json.dumps(str(torch.ones(2).dtype)))\n"
        "torch.set_default_tensor_type('torch.DoubleTensor')\n"
        "print(json.dumps(str(torch.ones(2).dtype)))\n"
        "train(torch.nn.Linear(4, 2), torch.ones(3, 4))\n"
    ) == ["torch.float32", "torch.float32", [True, ""]]


def test_numbers_that_a_loader_puts_together_are_floats(doubles):
    dtype, kept, back = doubles(
        "from torch.utils.data import default_collate\n"
        "print(json.dumps(str(default_collate([1.5, 2.5]).dtype)))\n"
        "x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)\n"
        "print(json.dumps([x.requires_grad, x.is_leaf, x.tolist()]))\n"
        "torch.save({'a': [x]}, 'x.pt'); y = torch.load('x.pt')\n"
        "print(json.dumps([str(y['a'][0].dtype), y['a'][0].tolist()]))\n"
        "os.remove('x.pt')\n"
    )
    assert dtype == "torch.float32"
    assert kept == [True, True, [1.0, 2.0]]
    assert back == ["torch.float32", [1.0, 2.0]]


DOUBLE = "torch.__dict__['float64']"


@pytest.mark.parametrize(
    "text, why",
    [
        ("train(torch.nn.Linear(4, 2), torch.ones(3, 4))", "asks torch for no doubles"),
        (
            "net = torch.nn.Linear(4, 2).double()\n"
            f"for p in net.parameters(): p.data = p.data.to({DOUBLE})\n"
            f"train(net, torch.ones(3, 4).to({DOUBLE}))",
            "still gives doubles",
        ),
        (
            "net = torch.nn.Linear(4, 2).double()\n"
            f"net.register_buffer('mean', torch.ones(1).to({DOUBLE}))\n"
            "train(net, torch.ones(3, 4))",
            "doubles are left in a Linear",
        ),
        (
            "net = torch.nn.Linear(4, 2).double()\n"
            "torch.frombuffer(bytearray(16), dtype=torch.float64)\n"
            "train(net, torch.ones(3, 4))",
            "bytes may be read as doubles",
        ),
    ],
)
def test_where_doubles_are_left_nothing_is_measured(doubles, text, why):
    settled, said = doubles(text)[-1]
    assert not settled
    assert why in said


# ---- a thread in a process of its own ----

BESIDE = """
import json, os, sys, threading, time
sys.path.insert(0, {package!r})
from sonde._trial import apart, steps

class Course:
    past_start, pid = True, os.getpid()
    step = from_step = 0
    last = 1 << 62

    def __init__(self):
        self.spec = dict(apart=dict(place={place!r}))
        self.looks, self.parts, self.at_end = [], [], []

    def part(self, name):
        self.parts.append(steps.Part(name))
        return self.parts[-1]

    def end(self, how):
        tell(ended=how)
        for one in self.at_end:
            one()
        os._exit(0)

    def step_on(self):
        self.step += 1
        for look in self.looks:
            look()
        return self.parts[0].settled

def tell(**more):
    part = course.parts[0]
    row = dict(settled=part.settled, why=part.why, **part.told, **more)
    os.write(1, (json.dumps(row) + chr(10)).encode())

apart._ASLEEP_S, apart._OVER_S, apart._POLL_S = 0.5, 0.3, 0.02
course = Course()
apart.install(course)

def settle(most_s=20):
    end = time.monotonic() + most_s
    while not course.step_on() and not course.parts[0].why and time.monotonic() < end:
        time.sleep(0.005)

{text}
"""

SPIN = """
count = [0]
def spin():
    while True:
        count[0] += 1
def rest():
    time.sleep(1000)
thread = threading.Thread(target=spin, daemon=True)
threading.Thread(target=rest, daemon=True).start()
thread.start()
"""


@pytest.fixture
def beside(tmp_path):
    """A program with a thread beside its loop: what it told."""

    def go(text, place=""):
        file = tmp_path / "program.py"
        file.write_text(BESIDE.format(package=str(conftest.PACKAGE), text=text, place=place))
        return [json.loads(line) for line in conftest.python(file).stdout.splitlines()]

    return go


@pytest.mark.parametrize("place", ["", "program.py:{line} in spin"])
def test_a_thread_goes_on_in_a_process_and_leaves_this_one(beside, place):
    line = (BESIDE + SPIN).splitlines().index("        count[0] += 1") - 1
    (told,) = beside(
        SPIN + "settle()\n"
        "before = count[0]; child = course.looks[0].__self__.children[0]\n"
        "def used(): return sum(map(int, open(f'/proc/{child}/stat').read().split()[13:15]))\n"
        "began = used()\n"
        "for _ in range(10): course.step_on(); time.sleep(0.1)\n"
        "tell(more=count[0] - before, alive=thread.is_alive(), used=used() - began)\n"
        "for one in course.at_end: one()\n"
        "assert not os.path.exists(f'/proc/{child}')\n",
        place.format(line=line),
    )
    assert told["settled"] and not told["why"]
    assert told["function"] == "the thread of spin(), now a process"
    assert told["more"] == 0 and told["alive"]
    assert told["used"] > 5  # ticks: others may have the cores


def test_it_forks_while_the_main_thread_is_inside_of_no_library(beside):
    (told,) = beside(
        "names = []\n"
        "def forks():\n"
        "    frame = sys._current_frames()[threading.main_thread().ident]\n"
        "    while frame: names.append(frame.f_code.co_name); frame = frame.f_back\n"
        "os.register_at_fork(before=forks)\n" + SPIN + "settle()\ntell(names=names)\n"
        "for one in course.at_end: one()\n"
    )
    assert told["settled"]
    assert "look" in told["names"]


def test_no_thread_at_the_place_is_said(beside):
    (told,) = beside(SPIN + "settle()\ntell()\n", "program.py:3 in nobody")
    assert not told["settled"]
    assert told["why"] == "no other thread is at program.py:3 in nobody"


def test_a_loop_that_waits_for_the_thread_is_noticed(beside):
    (told,) = beside(
        "import queue\n"
        "made = queue.Queue(2)\n"
        "def produce():\n"
        "    while True:\n"
        "        made.put(sum(i * i for i in range(200000)))\n"
        "threading.Thread(target=produce, daemon=True).start()\n"
        "while True:\n"
        "    made.get()\n"
        "    course.step_on()\n"
    )
    assert told["ended"] == "failed" and not told["settled"]
    assert told["why"].startswith("the loop waits for the thread of produce()")


def test_a_thread_that_was_stopped_with_a_lock_is_stopped_elsewhere(beside):
    rows = beside(
        "lock, free = threading.Lock(), threading.Event()\n"
        "def busy(s):\n"
        "    end = time.monotonic() + s\n"
        "    while time.monotonic() < end: pass\n"
        "def work():\n"
        "    with lock:\n"
        "        while not free.is_set(): busy(0.001)\n"
        "    while True: busy(0.01)\n"
        "threading.Thread(target=work, daemon=True).start()\n"
        "while not course.looks[0].__self__.parked:\n"  # in the lock, for sure
        "    course.step_on(); time.sleep(0.005)\n"
        "free.set()\n"
        "with lock: pass\n"
        "settle(); tell(tries=course.looks[0].__self__.tries)\n"
        "with lock: pass\n"
        "for one in course.at_end: one()\n"
    )
    assert rows[-1]["settled"] and not rows[-1]["why"]
    assert rows[-1]["tries"] == 1


def test_a_program_that_joins_the_thread_at_its_end_has_ended(beside):
    (told,) = beside(SPIN + "settle()\ncourse.last = course.step\nthread.join()\n")
    assert told["ended"] == "program" and told["settled"]


def test_threads_that_come_later_stop_too(beside):
    (told,) = beside(
        SPIN + "settle()\n"
        "before = count[0]\n"
        "threading.Thread(target=spin, daemon=True).start(); time.sleep(0.3)\n"
        "children = len(course.looks[0].__self__.children)\n"
        "tell(more=count[0] - before, children=children)\n"
        "for one in course.at_end: one()\n"
    )
    assert told["more"] == 0 and told["children"] == 1


# ---- larger batches, by hand ----

LARGER = """
import json, os, sys
sys.path.insert(0, {package!r})
import torch
from sonde._trial import rows, steps

class Course:
    step = 0

    def __init__(self):
        self.spec = dict(rows=dict([("from", {told}), ("times", 8)]))
        self.looks, self.parts = [], []

    @property
    def past_start(self):
        return self.step >= 3

    def part(self, name):
        self.parts.append(steps.Part(name))
        return self.parts[-1]

course = Course()
rows.torch_came(course, torch)
x, y = torch.arange(960.0).reshape(320, 3), torch.arange(320.0)
net = torch.nn.Linear(3, 1)

def step(a, b):
    course.step += 1
    for look in course.looks:
        look()
    loss = (net(a)[:, 0] - b).square().mean()
    loss.backward()
    part = course.parts[0]
    print(json.dumps([list(a.shape), list(b.shape), part.settled, part.why]))

{text}
"""


@pytest.fixture
def larger(tmp_path):
    """A loop that makes its batches by hand: of each step the shapes, and how it goes."""
    if not has_torch():
        pytest.skip("no torch here")

    def go(text, told=4):
        file = tmp_path / "program.py"
        file.write_text(
            LARGER.format(package=str(conftest.PACKAGE), text=text, told=told)
        )
        done = conftest.python(file, check=False)
        return [json.loads(line) for line in done.stdout.splitlines()], done

    return go


@pytest.mark.parametrize(
    "batches",
    [
        "((x[i:i + 4], y[i:i + 4]) for i in range(0, 120, 4))",
        "((x[i:i + 4, :], y[i:i + 4]) for i in range(0, 120, 4))",
        "zip(x.split(4), y.split(4))",
        "zip(torch.split(x, 4), torch.split(y, split_size_or_sections=4, dim=0))",
        "zip(x.chunk(80), torch.chunk(y, 80))",
        "((x[r], y[r]) for r in torch.randperm(320).split(4))",
        "((x[r], y[r]) for r in (torch.randint(320, (4,)) for _ in range(20)))",
        "((x[p[i:i + 4]], y[p[i:i + 4]]) for p in [torch.randperm(320)] for i in range(0, 80, 4))",
        "((x[[i, i, 1, 2]], y[[i, i, 1, 2]]) for i in range(20))",
        "((x.narrow(0, i, 4), y.narrow(0, i, 4)) for i in range(20))",
        "((x.index_select(0, r), y.index_select(0, r)) for r in torch.randperm(320).split(4))",
        "(data[i:i + 4] for data in [torch.utils.data.TensorDataset(x, y)] for i in range(20))",
    ],
)
def test_rows_that_the_loop_asks_for_are_k_times_as_many(larger, batches):
    rows, done = larger(f"for a, b in {batches}: step(a, b)")
    assert done.returncode == 0, done.stderr
    assert rows[-1] == [[32, 3], [32], True, ""]
    assert all(a[0] == b[0] for a, b, _, _ in rows)


@pytest.mark.parametrize(
    "batches",
    [
        "zip(x.split(4), y.split(4))",
        "((x[r], y[r]) for r in torch.randperm(320).chunk(80))",
        "((x[i:i + 4], y[i:i + 4]) for i in range(0, 120, 4))",
    ],
)
def test_a_batch_may_have_fewer_rows_than_was_told(larger, batches):
    rows, done = larger(f"for a, b in {batches}: step(a, b)", told=6)
    assert done.returncode == 0, done.stderr
    assert rows[0][0] == [4, 3]
    assert rows[-1] == [[32, 3], [32], True, ""]


def test_pieces_that_are_taken_out_before_the_first_step_are_longer(larger):
    rows, done = larger(
        "both = list(zip(x.split(4), y.split(4)))\n"
        "for a, b in both: step(a, b)\n"
    )
    assert done.returncode == 0, done.stderr
    assert rows[-1] == [[32, 3], [32], True, ""]


def test_what_is_asked_for_in_another_way_is_given(larger):
    rows, done = larger(
        "a = torch.split(tensor=y, split_size_or_sections=[4] * 80)\n"
        "b = torch.chunk(input=y, chunks=80)\n"
        "assert len(a) == len(b) == 80 and y[..., None].shape == (320, 1)\n"
        "for i in range(0, 80, 4): step(x[i:i + 4], y[i:i + 4])\n"
        "assert x[x[:, 0] < 9].shape == (3, 3) and y[5] == 5 and y[None].shape == (1, 320)\n"
    )
    assert done.returncode == 0, done.stderr
    assert rows[-1][2]


def test_rows_and_targets_stay_together(larger):
    rows, done = larger(
        "for i in range(0, 320, 4):\n"
        "    a, b = x[i:i + 4], y[i:i + 4]\n"
        "    assert torch.equal(a[:, 0], 3 * b)\n"
        "    assert i < 12 or len(set(b.tolist())) == 32\n"  # at the end, too
        "    step(a, b)\n"
    )
    assert done.returncode == 0, done.stderr
    assert rows[-1][:3] == [[32, 3], [32], True]


def test_what_a_module_asks_for_is_its_own(larger):
    rows, done = larger(
        "class Net(torch.nn.Module):\n"
        "    def forward(self, a):\n"
        "        assert len(a[0:4]) == 4 and len(a[torch.tensor([0, 1, 2, 3])]) == 4\n"
        "        return a[:, :1]\n"
        "lin, net = net, torch.nn.Sequential(net, Net())\n"
        "for i in range(0, 80, 4): step(x[i:i + 4], y[i:i + 4])\n"
    )
    assert done.returncode == 0, done.stderr
    assert rows[-1][2]


@pytest.mark.parametrize(
    "batches, why",
    [
        ("((torch.ones(4, 3), torch.ones(4)) for _ in range(20))", "not rows of a tensor"),
        ("((x[0:4][:4], torch.ones(4)) for _ in range(20))", "size of tensor"),
        (
            "((a, torch.ones(len(a))) for _ in range(20) for a in [torch.cat([x[0:4], x[0:2]])])",
            "the model sees 34 rows instead of 32",
        ),
    ],
)
def test_where_the_model_does_not_see_them_nothing_is_measured(larger, batches, why):
    rows, done = larger(f"for a, b in {batches}: step(a, b)")
    assert not rows[-1][2]
    assert why in rows[-1][3] or why in done.stderr


WIDTHS = """
class Sum(torch.nn.Module):
    def forward(self, a): return (a * weight).sum(1, keepdim=True)
net, weight = Sum(), torch.ones(1, requires_grad=True)
z = torch.ones(320, 40)
for i in range(0, 80, 4):
    step({}, y[i:i + 4])
"""


def test_a_batch_that_changed_in_another_way_is_not_measured(larger):
    rows, _ = larger(WIDTHS.format("z.t()[0:4].t()[i:i + 4]"))  # four columns, too
    assert not rows[-1][2]
    assert "a batch of (4, 4) became one of (32, 32)" in rows[-1][3]


def test_batches_of_any_width_are_larger_by_their_rows_alone(larger):
    rows, _ = larger(WIDTHS.format("z[i:i + 4, :5 + i % 7]"))
    assert rows[-1][2] and not rows[-1][3]


# ---- torch's optimizer in the place of one's own ----

OPTIMIZERS = """
import json, sys
sys.path.insert(0, {package!r})
import torch
from sonde._trial import foreach, steps

class Course:
    spec, step, looks, parts, past_start = {{"foreach": 1}}, 0, [], [], True
    def part(self, name):
        self.parts.append(steps.Part(name))
        return self.parts[-1]

course = Course()
foreach.torch_came(course, torch)
calls = []

class Own(torch.optim.Optimizer):
    kept = {{"m": 1, "v": 1}}  # how many times the parameter's size

    def __init__(self, params):
        super().__init__(params, {{"lr": 0.1}})

    @torch.no_grad()
    def step(self, closure=None):
        calls.append(self)
        if closure is not None:
            with torch.enable_grad():
                closure()
        for group in self.param_groups:
            for p in group["params"]:
                for name, times in self.kept.items():
                    self.state[p][name] = torch.zeros(times, *p.shape).squeeze(0)
                p -= group["lr"] * p.grad

def train(make, steps=20, closure=False, sparse=False):
    torch.manual_seed(0)
    net = torch.nn.Linear(4, 2)
    if sparse:
        net = torch.nn.Embedding(4, 2, sparse=True)
    optimizer = make(net.parameters())
    x = torch.arange(4) if sparse else torch.ones(3, 4)
    for course.step in range(1, steps):
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step(*[lambda: None] if closure else [])
        for look in course.looks:
            look()
    part = course.parts[0]
    bias = next(net.parameters()).flatten()[0].item()
    print(json.dumps([part.settled, part.why, part.told.get("instead"), len(calls), bias]))

{text}
"""


@pytest.fixture
def optimized(tmp_path):
    """A program whose optimizer's step torch does: settled, why not, by what, how often the
    program's own was called, and one of the parameters."""
    if not has_torch():
        pytest.skip("no torch here")

    def go(text):
        file = tmp_path / "program.py"
        file.write_text(OPTIMIZERS.format(package=str(conftest.PACKAGE), text=text))
        return json.loads(conftest.python(file).stdout.splitlines()[-1])

    return go


@pytest.mark.parametrize(
    "kept, kind",
    [({}, "SGD"), ({"m": 1}, "SGD"), ({"m": 1, "v": 1}, "AdamW"), ({"v": 1, "t": 1}, "AdamW")],
)
def test_one_s_own_optimizer_gives_way_to_the_nearest_of_torch(optimized, kept, kind):
    settled, why, instead, calls, weight = optimized(f"Own.kept = {kept}\ntrain(Own)\n")
    assert (settled, why) == (True, "")
    assert instead in (f"torch.optim.{kind}()", f"torch.optim.{kind}(foreach=True)")
    assert calls == 1  # the one before the first look
    assert weight == weight


def test_moments_that_are_kept_in_lists_are_counted(optimized):
    assert optimized(
        "class Lists(Own):\n"
        "    kept = {}\n"
        "    def __init__(self, params):\n"
        "        super().__init__(params)\n"
        "        self.m, self.v = ([torch.zeros_like(p) for p in g['params']]"
        " for g in self.param_groups * 2)\n"
        "train(Lists)\n"
    )[2].startswith("torch.optim.AdamW(")


def test_a_class_derived_from_one_of_torch_gives_way_to_that(optimized):
    settled, _, instead, calls, _ = optimized(
        "class Slow(torch.optim.RMSprop):\n"
        "    def step(self, closure=None):\n"
        "        calls.append(self)\n"
        "        return super().step(closure)\n"
        "train(Slow)\n"
    )
    assert settled
    assert instead.startswith("torch.optim.RMSprop(")
    assert calls == 1


def test_one_of_torch_s_own_is_set_to_all_parameters_at_once(optimized):
    loop = "train(lambda ps: torch.optim.Adam(ps, lr=0.1, foreach=False))\n"
    settled, why, instead, _, weight = optimized(loop)
    assert (settled, why) == (True, "")
    assert instead in ("Adam(foreach=True)", "Adam(fused=True)")
    truth = optimized("course.looks.clear()\n" + loop)[4]
    assert weight == pytest.approx(truth, abs=5e-3)  # it is the same optimizer, and trains


@pytest.mark.parametrize(
    "text, why",
    [
        ("train(lambda ps: torch.optim.Adam(ps, foreach=True))", "all parameters at once already"),
        ("train(torch.optim.SparseAdam, sparse=True)", "torch has no other way for SparseAdam"),
        ("Own.kept = {'left': 3}\ntrain(Own)", "it keeps more than moments"),
    ],
)
def test_what_torch_has_nothing_for_is_told(optimized, text, why):
    settled, said = optimized(text)[:2]
    assert not settled
    assert why in said


def test_a_step_that_computes_gradients_itself_is_left_alone(optimized):
    settled, _, _, calls, _ = optimized("train(Own, steps=8, closure=True)\n")
    assert not settled
    assert calls == 7


# ---- buffers that are kept ----


def test_where_no_allocation_comes_by_nothing_is_measured():
    from sonde._trial import kept

    course = Course()
    kept.install(course)
    assert not course.parts
    course = Course(keep=1)
    kept.install(course)
    for look in course.looks:
        look()
    assert not course.parts[0].settled
    assert course.parts[0].why == "its allocations do not come by Sonde"
