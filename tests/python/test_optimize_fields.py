"""Each field of Config that sonde.optimize reads switches what it names."""

import os
import threading
import time

import pytest

import sonde
from sonde.optimize import _limits, _loader
from sonde.optimize._files import HEAD

NUMBERS = list(range(24))


def nap(x):
    time.sleep(0.004)
    return x + 1


def prepared(**fields):
    """The receipt of a pipeline that waits."""
    with sonde.optimize.preprocessing(
        [nap], NUMBERS, sonde.Config(**fields), budget_s=40
    ) as pipeline:
        assert pipeline(NUMBERS[:5]) == [1, 2, 3, 4, 5] and pipeline(7) == 8
        return pipeline.receipt


def trials(receipt):
    return {t.name: t for t in receipt.trials}


class Counted:
    """A data set that knows who asked for what."""

    def __init__(self, length=40):
        self.length, self.asked, self.threads = length, [], set()

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if not 0 <= index < self.length:
            raise IndexError(index)
        self.asked.append(index)
        self.threads.add(threading.get_ident())
        return f"sample {index}"


# ---- automatic -------------------------------------------------------------------------


@pytest.mark.timing
def test_auto_optimize():
    off = prepared(auto_optimize=False)
    assert not off.accepted and off.chosen == "sequential"
    assert "auto_optimize is off" in off.reason and off.gain.low >= 0.1
    assert prepared(auto_optimize=True).accepted


@pytest.mark.timing
def test_optimization_threshold():
    # Two workers save half of the time at most.
    high = prepared(optimization_threshold=0.8)
    assert not high.accepted and high.gain.high < 0.8 and "80%" in high.reason
    assert prepared(optimization_threshold=0.1).accepted


# ---- loading ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def loaders():
    """Two loaders of a data set that waits, with other bounds each."""
    data = pytest.importorskip("torch.utils.data")

    class Waits(data.Dataset):
        def __len__(self):
            return 96

        def __getitem__(self, index):
            time.sleep(0.01)
            return index

    def made(**fields):
        config = sonde.Config(enable_caching=False, optimization_threshold=0.05, **fields)
        own = data.DataLoader(Waits(), batch_size=4)
        return sonde.optimize.loader(own, config, budget_s=40)

    return (
        made(num_workers=2, prefetch_factor=3, persistent_workers=True),
        made(num_workers=3, prefetch_factor=5, persistent_workers=False),
    )


@pytest.mark.timing
def test_num_workers(loaders):
    assert [bool(r.accepted) for _, r in loaders] == [True, True]
    for (loader, receipt), most in zip(loaders, (2, 3)):
        assert 1 <= loader.num_workers <= most
        assert max(t.settings["num_workers"] for t in receipt.trials) == most


def test_no_workers_are_tried_with_num_workers_0():
    pytest.importorskip("torch")
    found = sonde.optimize.Analysis("map", 100, 8, 0.01, 0.0, False, 8)
    assert _loader.worker_counts(found, sonde.Config(num_workers=0)) == []


@pytest.mark.timing
def test_prefetch_factor(loaders):
    assert [loader.prefetch_factor for loader, _ in loaders] == [3, 5]


@pytest.mark.timing
def test_persistent_workers(loaders):
    assert [loader.persistent_workers for loader, _ in loaders] == [True, False]


def test_pin_memory():
    found = sonde.optimize.Analysis("map", 100, 8, 0.01, 0.0, False, 8)
    own = dict(
        num_workers=0, prefetch_factor=2, pin_memory=False, persistent_workers=False
    )

    def pinned(on, cuda):
        tried = _loader.proposals(found, sonde.Config(pin_memory=on), own, cuda)
        assert tried
        return {t["pin_memory"] for t in tried}

    assert pinned(True, cuda=True) == {True}
    assert pinned(False, cuda=True) == pinned(True, cuda=False) == {False}


def test_optimize_loading():
    data = pytest.importorskip("torch.utils.data")
    dataset = Counted()
    own = data.DataLoader(dataset)
    loader, receipt = sonde.optimize.loader(own, sonde.Config(optimize_loading=False))
    assert loader is own and not dataset.asked and not receipt.trials
    assert "optimize_loading is off" in receipt.reason
    loader, receipt = sonde.optimize.loader(own, sonde.Config(), budget_s=20)
    assert dataset.asked and receipt.trials


# ---- memory ----------------------------------------------------------------------------


@pytest.fixture
def small_machine(monkeypatch):
    """A machine with 100,000 bytes, of which 10,000 are taken."""
    monkeypatch.setattr(_limits, "total_bytes", lambda: 100_000)
    monkeypatch.setattr(_limits, "used_bytes", lambda: 10_000)


def longest(**fields):
    rows = ["x" * 951] * 500  # 1,000 bytes each
    return max(map(len, sonde.optimize.chunks(rows, sonde.Config(**fields))))


def test_memory_efficient(small_machine):
    assert longest(memory_efficient=False) == 500
    assert longest(memory_efficient=True) == 17  # a quarter of 70,000 bytes


def test_max_memory_usage(small_machine):
    assert longest(max_memory_usage=0.5) == 10 < longest(max_memory_usage=0.9)
    for share in (0.5, 0.9):
        scope = sonde.optimize.memory(sonde.Config(max_memory_usage=share))
        assert scope.limit_bytes == share * 100_000
    data, _ = sonde.optimize.dataset(
        Counted(), sonde.Config(max_memory_usage=0.101), where="memory"
    )
    assert [data[i] for i in range(40)][-1] == "sample 39"
    assert 0 < data.store.bytes <= 100 and len(data.store) < 40


def test_chunk_size():
    pieces = list(sonde.optimize.chunks(range(10), sonde.Config(chunk_size=4)))
    assert [list(p) for p in pieces] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert len(list(sonde.optimize.chunks(range(10), sonde.Config(chunk_size=5)))) == 2
    lines = (str(i) for i in range(7))
    assert [len(p) for p in sonde.optimize.chunks(lines, sonde.Config(chunk_size=3))] == [
        3,
        3,
        1,
    ]


@pytest.mark.timing
def test_streaming():
    dataset = Counted()
    data, receipt = sonde.optimize.dataset(dataset, sonde.Config(streaming=True))
    assert not dataset.asked and receipt.chosen == "streamed"
    for _ in range(2):
        assert list(data) == [f"sample {i}" for i in range(40)]
    assert dataset.asked == 2 * list(range(40))  # nothing was kept
    data, receipt = sonde.optimize.dataset(dataset, sonde.Config(streaming=False))
    assert isinstance(data, sonde.optimize.CachedDataset)


# ---- caching ---------------------------------------------------------------------------


@pytest.mark.timing
def test_enable_caching():
    dataset = Counted()
    same, receipt = sonde.optimize.dataset(dataset, sonde.Config(enable_caching=False))
    assert same is dataset and "caching is off" in receipt.reason
    data, _ = sonde.optimize.dataset(dataset, sonde.Config(enable_caching=True))
    dataset.asked.clear()
    assert [data[3], data[3], data[3]] == ["sample 3"] * 3 and dataset.asked == [3]


def test_cache_dir(tmp_path):
    for name in ("one", "two"):
        config = sonde.Config(cache_dir=tmp_path / name)
        data, _ = sonde.optimize.dataset(Counted(), config, where="disk")
        assert data[0] == data[0] and data.hits == 1
        assert len(list((tmp_path / name).rglob("*.sample"))) == 1
        data.close()
        assert not list((tmp_path / name).iterdir())


@pytest.mark.parametrize("where", ["memory", "disk"])
def test_cache_size(tmp_path, where):
    config = sonde.Config(cache_size=10, cache_dir=tmp_path / "cache")
    data, receipt = sonde.optimize.dataset(Counted(), config, where=where)
    for _ in range(2):
        assert [data[i] for i in range(40)] == [f"sample {i}" for i in range(40)]
    assert len(data.store) == 10 and data.hits == 10 and data.hit_rate == 10 / 80
    assert "25%" in receipt.reason
    data.close()


# ---- preprocessing ---------------------------------------------------------------------


@pytest.mark.timing
def test_optimize_preprocessing():
    calls = []
    config = sonde.Config(optimize_preprocessing=False)
    pipeline = sonde.optimize.preprocessing([calls.append], NUMBERS, config)
    assert pipeline.strategy == "sequential" and not calls
    assert "optimize_preprocessing is off" in pipeline.receipt.reason
    sonde.optimize.preprocessing([calls.append], NUMBERS, sonde.Config()).close()
    assert calls


@pytest.mark.timing
def test_batch_preprocessing():
    def doubled(x):
        return [y * 2 for y in x] if isinstance(x, list) else x * 2

    for on in (True, False):
        config = sonde.Config(batch_preprocessing=on, parallel_preprocessing=False)
        pipeline = sonde.optimize.preprocessing([doubled], NUMBERS, config)
        assert ("batched" in trials(pipeline.receipt)) is on
        assert pipeline(NUMBERS) == [2 * x for x in NUMBERS]


@pytest.mark.timing
def test_parallel_preprocessing():
    on, off = prepared(), prepared(parallel_preprocessing=False)
    assert {"threads", "processes"} <= set(trials(on))
    assert set(trials(off)) == {"sequential"} and not off.accepted


@pytest.mark.timing
def test_preprocessing_workers():
    few, many = prepared(preprocessing_workers=2), prepared(preprocessing_workers=6)
    assert few.settings["workers"] == 2 and many.settings["workers"] == 6
    best = [min(t.median_s for t in r.trials) for r in (few, many)]
    assert best[1] < best[0]  # three times as many wait at once
    assert set(trials(prepared(preprocessing_workers=1))) == {"sequential"}


# ---- files -----------------------------------------------------------------------------


@pytest.fixture
def large(tmp_path):
    path = tmp_path / "large"
    path.write_bytes(os.urandom(1 << 16) * 32)  # 2 MiB
    return path


def test_optimize_io(large, tmp_path):
    off = sonde.optimize.reader(large, sonde.Config(optimize_io=False))
    assert not off.receipt.trials and off() == large.read_bytes()
    on = sonde.optimize.reader(large, sonde.Config())
    assert len(on.receipt.trials) > 1 and on() == large.read_bytes()
    text = "a line\n" * 1000
    sizes = [
        sonde.optimize.store(text, tmp_path / "stored", sonde.Config(optimize_io=flag))
        for flag in (True, False)
    ]
    assert sizes[0] < sizes[1] == HEAD.size + len(text)


@pytest.mark.parametrize("name, number", [("none", 0), ("gzip", 1), ("zstd", 2)])
def test_compression(tmp_path, name, number):
    config, path, text = sonde.Config(compression=name), tmp_path / "x", "a line\n" * 1000
    try:
        size = sonde.optimize.store(text, path, config)
    except sonde.optimize.CodecError:
        pytest.skip("no zstd here")
    assert path.stat().st_size == size and HEAD.unpack_from(path.read_bytes())[2] == number
    assert (size < 1000) is (name != "none")
    assert sonde.optimize.load(path) == text
    config = sonde.Config(compression=name, cache_dir=tmp_path / "cache")
    data, _ = sonde.optimize.dataset([text] * 3, config, where="disk")
    assert data[0] == data[0] == text and data.hits == 1
    (sample,) = data.store.folder.iterdir()
    assert HEAD.unpack_from(sample.read_bytes())[2] == number


def test_buffer_size(large):
    for size in (1 << 12, 1 << 16):
        found = sonde.optimize.reader(large, sonde.Config(buffer_size=size))
        blocks = list(found)
        assert {len(block) for block in blocks} == {size}
        assert b"".join(blocks) == large.read_bytes()


def test_async_io(large):
    for on in (True, False):
        config = sonde.Config(async_io=on, streaming=True)
        found = sonde.optimize.reader(large, config)
        assert ("ahead" in trials(found.receipt)) is on
        dataset = Counted()
        data, _ = sonde.optimize.dataset(dataset, config)
        assert len(list(data)) == 40
        assert (threading.get_ident() in dataset.threads) is not on


def test_every_field_has_a_test_here():
    source = open(__file__, encoding="utf-8").read()
    fields = """auto_optimize optimization_threshold optimize_loading prefetch_factor
        num_workers pin_memory persistent_workers memory_efficient max_memory_usage
        chunk_size enable_caching cache_dir cache_size optimize_preprocessing
        batch_preprocessing parallel_preprocessing preprocessing_workers optimize_io
        compression buffer_size async_io streaming""".split()
    assert len(fields) == 22
    assert all(f"def test_{name}(" in source for name in fields)
    assert not set(fields) & set(sonde.Config().pending())
