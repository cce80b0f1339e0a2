"""sonde.optimize.loader on data sets whose truth is known."""

import itertools
import os
import random
import signal
import subprocess
import sys
import time

import pytest

torch = pytest.importorskip("torch")

import sonde  # noqa: E402
from conftest import environment  # noqa: E402
from sonde.optimize import _loader  # noqa: E402
from sonde.optimize._values import same  # noqa: E402
from torch.utils.data import DataLoader, Dataset, IterableDataset  # noqa: E402

class Waits(Dataset):
    """A sample that waits, as from a slow disk."""

    def __init__(self, seconds=0.005, length=160):
        self.seconds, self.length = seconds, length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        time.sleep(self.seconds)
        return torch.arange(3, dtype=torch.float32) * index, index


class Fast(Dataset):
    def __init__(self, length=4000):
        self.rows = torch.randn(length, 4)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]


class Random(Waits):
    def __getitem__(self, index):
        return super().__getitem__(index)[0] + random.random()


class Stream(IterableDataset):
    def __iter__(self):
        for i in range(120):
            time.sleep(0.005)
            yield i


UNCACHED = dict(enable_caching=False)


def optimized(own, budget_s=40, **fields):
    given = {k: fields.pop(k) for k in ("step", "allow") if k in fields}
    return sonde.optimize.loader(own, sonde.Config(**fields), budget_s=budget_s, **given)


@pytest.mark.timing
def test_workers_win_where_samples_wait_and_batches_stay_the_same():
    def made():
        generator = torch.Generator().manual_seed(5)
        return DataLoader(Waits(), batch_size=4, shuffle=True, generator=generator)

    own = made()
    loader, receipt = optimized(own, **UNCACHED)
    assert receipt.accepted and receipt.gain.low >= 0.1 and loader is not own
    assert loader.num_workers > 0 == own.num_workers
    assert receipt.settings["num_workers"] == loader.num_workers
    assert loader.sampler is own.sampler and loader.generator is own.generator
    assert {b["id"] for b in receipt.bottlenecks} >= {"data_loading_bound"}
    # Measuring drew from the generator and put it back, and kept workers draw as often
    # as none: epochs as if nothing was.
    assert loader.persistent_workers
    untouched = made()
    for _ in range(3):
        assert same(list(loader), list(untouched))


def test_the_global_generators_are_put_back():
    torch.manual_seed(3), random.seed(3)
    loader, _ = optimized(DataLoader(Random(), batch_size=4, shuffle=True), **UNCACHED)
    now = torch.rand(1).item(), random.random()
    torch.manual_seed(3), random.seed(3)
    assert now == (torch.rand(1).item(), random.random())


@pytest.mark.timing
def test_what_is_fast_already_stays_as_it_is():
    own = DataLoader(Fast(), batch_size=32)
    loader, receipt = optimized(own)
    assert loader is own and not receipt.accepted and receipt.chosen == "as it is"
    assert len(receipt.trials) > 2 and receipt.trials[0].median_s > 0


@pytest.mark.timing
def test_a_step_that_takes_the_time_leaves_nothing_to_gain():
    own = DataLoader(Waits(0.0005), batch_size=2)
    loader, receipt = optimized(own, step=0.05)
    assert loader is own and "too little to gain" in receipt.reason
    assert receipt.analysis["wait_share"] < 0.1


def test_the_step_is_called_with_batches():
    seen = []
    optimized(DataLoader(Waits(0.002), batch_size=4), step=seen.append, **UNCACHED)
    assert seen and seen[0][0].shape == (4, 3)


@pytest.mark.timing
def test_a_cache_wins_without_workers_and_gives_the_same():
    own = DataLoader(Waits(), batch_size=4)
    loader, receipt = optimized(own, num_workers=0)
    assert receipt.accepted and "cached in memory" in receipt.chosen
    assert any("first epoch" in note for note in receipt.notes)
    for _ in range(2):
        assert same(list(loader), list(own))
    assert loader.dataset.hit_rate == 0.5


@pytest.mark.timing
def test_a_cache_that_holds_little_is_not_worth_much():
    own = DataLoader(Waits(), batch_size=4)
    loader, receipt = optimized(own, num_workers=0, cache_size=8)  # of 160
    assert loader is own and not receipt.accepted and receipt.gain.high < 0.2


@pytest.mark.timing
def test_random_samples_are_cached_only_when_allowed():
    own = DataLoader(Random(), batch_size=4)
    loader, receipt = optimized(own, num_workers=0)
    assert loader is own and receipt.analysis["random"] is True and len(receipt.trials) == 1
    loader, receipt = optimized(own, num_workers=0, allow=("random",))
    assert receipt.accepted and "cached" in receipt.chosen
    assert any("random" in note for note in receipt.notes)


@pytest.mark.timing
def test_iterable_data_sets_need_to_be_allowed_and_keep_their_order():
    own = DataLoader(Stream(), batch_size=4)
    loader, receipt = optimized(own)
    assert loader is own and "iterable" in receipt.reason and not receipt.trials
    loader, receipt = optimized(own, allow=("iterable",), step=0.02)
    assert receipt.accepted and loader.num_workers == 1  # two would give all twice
    assert same(list(loader), list(own))


@pytest.mark.timing
def test_larger_batches_only_when_allowed():
    class Paid(Dataset):
        """Each call costs, whatever it brings."""

        def __len__(self):
            return 256

        def __getitem__(self, index):
            return index

    own = DataLoader(Paid(), batch_size=4)
    fields = dict(num_workers=0, step=0.004, enable_caching=False, optimization_threshold=0)
    loader, receipt = optimized(own, **fields)
    assert loader is own
    loader, receipt = optimized(own, allow=("batch_size",), **fields)
    assert receipt.accepted and loader.batch_size == 16 and len(loader) == 16
    assert torch.equal(torch.cat(list(loader)), torch.arange(256))


def test_workers_that_are_kept_stay_kept_unless_order_may_change():
    own = dict(num_workers=2, prefetch_factor=2, pin_memory=False, persistent_workers=True)
    found = sonde.optimize.Analysis("map", 100, 8, 1e-5, 1.0, False, 8)
    config = sonde.Config(persistent_workers=False, num_workers=1)

    def tried(*allow):
        proposed = _loader.proposals(found, config, own, False, allow)
        return {(t["num_workers"], t["persistent_workers"]) for t in proposed}

    assert tried() == {(1, True)}
    assert tried("order") == {(1, False), (0, False)}


@pytest.mark.timing
def test_a_subclass_and_its_own_batches_stay_what_they_are():
    class Mine(DataLoader):
        def __init__(self, dataset, extra, **options):
            super().__init__(dataset, **options)
            self.extra = extra

    batches = [[i, i + 1, i + 7] for i in range(0, 120, 3)]
    own = Mine(Waits(), 42, batch_sampler=batches)
    loader, receipt = optimized(own, **UNCACHED)
    assert receipt.accepted and isinstance(loader, Mine) and loader.extra == 42
    assert same(list(loader), list(own))


@pytest.mark.timing
def test_single_samples_without_batches():
    own = DataLoader(Waits(0.008, 80), batch_size=None)
    loader, receipt = optimized(own, **UNCACHED)
    assert receipt.accepted and same(list(loader), list(own))


@pytest.mark.timing
def test_a_data_set_is_enough():
    loader, receipt = sonde.optimize.loader(
        Waits(), sonde.Config(**UNCACHED), batch_size=4, budget_s=40
    )
    assert receipt.accepted and loader.batch_size == 4
    with pytest.raises(ValueError, match="belong to a data set"):
        sonde.optimize.loader(DataLoader(Fast()), batch_size=4)
    with pytest.raises(ValueError, match="not 'precision'"):
        sonde.optimize.loader(DataLoader(Fast()), allow=("precision",))


def test_a_candidate_that_fails_is_no_candidate():
    class OnlyHere(Waits):
        def __init__(self):
            super().__init__()
            self.home = os.getpid()

        def __getitem__(self, index):
            if os.getpid() != self.home:
                raise RuntimeError("not in a worker")
            return super().__getitem__(index)

    own = DataLoader(OnlyHere(), batch_size=4)
    loader, receipt = optimized(own, **UNCACHED)
    assert loader is own and "no other way worked" in receipt.reason
    assert any("not in a worker" in t.note for t in receipt.trials)


@pytest.mark.timing
def test_workers_that_give_other_samples_are_found_out():
    class ByProcess(Waits):
        def __init__(self):
            super().__init__()
            self.home = os.getpid()

        def __getitem__(self, index):
            time.sleep(self.seconds)
            return index + (os.getpid() != self.home)

    own = DataLoader(ByProcess(), batch_size=4)
    loader, receipt = optimized(own, **UNCACHED)
    assert loader is own and "batches differ" in receipt.reason


def test_the_budget_is_kept_and_said():
    own = DataLoader(Waits(0.02), batch_size=8)
    loader, receipt = optimized(own, budget_s=0.5, **UNCACHED)
    assert loader is own and ("budget" in str(receipt) or "faster" in receipt.reason)


def test_workers_share_a_cache_on_disk(tmp_path):
    config = sonde.Config(cache_dir=tmp_path / "cache")
    data, _ = sonde.optimize.dataset(Waits(0.001, 40), config, where="disk")
    loader = DataLoader(data, batch_size=4, num_workers=2)
    first, second = list(loader), list(loader)
    assert same(first, second) and data.hits == 40 and data.misses == 40
    assert len(data.store) == 40
    data.close()
    assert same(list(loader), first)  # without it, all the same


@pytest.mark.timing
def test_the_receipt_can_be_read_by_people_and_programs():
    import json

    own = DataLoader(Waits(), batch_size=4)
    _, receipt = optimized(own, **UNCACHED)
    text, data = str(receipt), json.loads(receipt.to_json())
    assert "accepted" in text and "less time" in text and "as it is" in text
    assert data["gain"]["low"] <= data["gain"]["share"] <= data["gain"]["high"]
    assert data["trials"][0]["name"] == "as it is" and data["seconds"] > 0


INTERRUPTED = """
import time, sonde
from torch.utils.data import DataLoader

class Waits:
    def __len__(self): return 1000
    def __getitem__(self, index):
        time.sleep(0.02)
        return index

own = DataLoader(Waits(), batch_size=4, num_workers=2, persistent_workers=True)
print("ready", flush=True)
sonde.optimize.loader(own, sonde.Config(), budget_s=60)
"""


def interrupted(whole_group):
    words = [sys.executable, "-c", INTERRUPTED]
    child = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        start_new_session=True,
    )
    assert child.stdout.readline() == "ready\n"
    time.sleep(2)
    (os.killpg if whole_group else os.kill)(child.pid, signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    return child, errors


@pytest.mark.parametrize("whole_group", [True, False])
def test_an_interrupt_leaves_no_worker(whole_group):
    child, errors = interrupted(whole_group)
    # One that comes while Python forks ends in a handler of its own, which forgets it.
    while "Exception ignored in" in errors and child.returncode == 0:
        child, errors = interrupted(whole_group)
    assert "KeyboardInterrupt" in errors and child.returncode != 0
    for _ in itertools.repeat(None, 100):
        try:
            os.killpg(child.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    os.killpg(child.pid, signal.SIGKILL)
    pytest.fail("workers are left")
