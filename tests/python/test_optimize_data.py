"""sonde.optimize: caches, streams, stored values, memory, files; without torch and numpy."""

import gc
import hashlib
import os
import pickle
import random
import stat
import struct
import threading
import time

import pytest

import sonde
from conftest import python
from sonde.optimize import _files, _limits, _values
from sonde.optimize._measure import gain_of


class Rows:
    def __init__(self, length=30):
        self.length, self.calls, self.classes = length, 0, ["cat", "dog"]

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if not 0 <= index < self.length:
            raise IndexError(index)
        self.calls += 1
        return {"row": [index, index + 1], "name": f"n{index}"}


def cached(where, tmp_path, dataset=None, **options):
    config = sonde.Config(cache_dir=tmp_path / "cache")
    data = Rows() if dataset is None else dataset
    return sonde.optimize.dataset(data, config, where=where, **options).dataset


# ---- the cached data set ---------------------------------------------------------------


@pytest.mark.parametrize("where", ["memory", "disk"])
def test_samples_are_made_once_and_belong_to_the_caller(tmp_path, where):
    rows = Rows()
    data = cached(where, tmp_path, rows)
    rows.calls = 0
    first = [data[i] for i in range(30)]
    first[3]["row"].append("mine")
    again = [data[i] for i in range(30)]
    again[3]["row"].append("mine")
    assert data[3] == {"row": [3, 4], "name": "n3"} and rows.calls == 30
    assert len(data) == 30 and data.classes == ["cat", "dog"]
    assert (data.hits, data.misses) == (31, 30)
    with pytest.raises(IndexError):
        data[30]
    data.clear()
    assert data[3]["row"] == [3, 4] and rows.calls == 31
    data.close()


def test_iterating_a_cached_data_set_ends():
    data, _ = sonde.optimize.dataset(Rows(5))
    assert [s["name"] for s in data] == ["n0", "n1", "n2", "n3", "n4"]


def test_random_samples_are_not_cached_unless_allowed():
    class Rare(Rows):
        """Draws a number each time, and needs it once in a blue moon."""

        def __getitem__(self, index):
            return super().__getitem__(index)["name"] + "!" * (random.random() < 1e-9)

    random.seed(4)
    rows = Rare()
    data, receipt = sonde.optimize.dataset(rows)
    now = random.random()
    random.seed(4)
    assert now == random.random()
    assert data is rows and receipt.analysis["random"] and "allow" in receipt.reason
    data, receipt = sonde.optimize.dataset(rows, allow=("random",))
    assert data[0] == data[0] and data.hits == 1 and "same ones" in receipt.notes[0]


def test_a_cache_that_seldom_answers_is_given_up_when_asked():
    config = sonde.Config(cache_size=3)  # of 30
    for least, kept in ((0.5, 0), (0.05, 3)):
        data, _ = sonde.optimize.dataset(Rows(), config, least_hit_rate=least)
        for _ in range(3):
            assert [data[i]["name"] for i in range(30)] == [f"n{i}" for i in range(30)]
        assert len(data.store) == kept


def test_torchs_way_of_asking_for_many_goes_through_the_cache():
    class Together(Rows):
        def __getitems__(self, indices):
            return [self[i] for i in indices]

    rows = Together()
    data, _ = sonde.optimize.dataset(rows)
    rows.calls = 0
    wanted = [rows[i] for i in (4, 1, 7)]
    assert data.__getitems__([4, 1, 7]) == wanted == data.__getitems__([4, 1, 7])
    assert rows.calls == 6 and data.hits == 3
    plain, _ = sonde.optimize.dataset(Rows())
    assert plain.__getitems__([2])[0]["name"] == "n2"


def test_cached_data_sets_can_be_pickled_and_copied(tmp_path):
    data = cached("disk", tmp_path)
    data[0]
    copy = pickle.loads(pickle.dumps(data))
    assert copy[0] == data[0] and copy.hits == 1
    del copy
    gc.collect()
    assert data[0] and data.hits == 2 and data.misses == 1


# ---- the cache on disk -----------------------------------------------------------------


def test_files_are_private_and_go_with_the_cache(tmp_path):
    data = cached("disk", tmp_path)
    data[0]
    (path,) = data.store.folder.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for folder in (tmp_path / "cache", data.store.folder):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder = data.store.folder
    del data
    gc.collect()
    assert not folder.exists()


def test_data_with_a_key_stay_for_the_next_run(tmp_path):
    first = cached("disk", tmp_path, key="rows v1")
    first[5]
    first.close()
    rows = Rows()
    again = cached("disk", tmp_path, rows, key="rows v1")
    rows.calls = 0
    assert again[5]["name"] == "n5" and rows.calls == 0 and again.hits == 1
    other = cached("disk", tmp_path, key="rows v2")
    other[5]
    assert other.misses == 1


def test_a_damaged_file_is_made_anew(tmp_path):
    rows = Rows()
    data = cached("disk", tmp_path, rows)
    data[0]
    (path,) = data.store.folder.iterdir()
    whole, rows.calls = path.read_bytes(), 0
    damages = [b"", whole[:20], whole[:-1], whole[:-1] + b"?", b"x" * 200]
    for contents in damages:
        path.write_bytes(contents)
        assert data[0]["name"] == "n0" and path.read_bytes() == whole
    assert rows.calls == data.store.damaged == len(damages)


class Evil:
    def __reduce__(self):
        return os.mkdir, ("run",)


def test_a_file_that_others_could_have_written_is_not_unpickled(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = cached("disk", tmp_path)
    data[0]
    (path,) = data.store.folder.iterdir()
    path.write_bytes(_files.encode(Evil(), "none"))
    path.chmod(0o666)
    assert data[0]["name"] == "n0" and not (tmp_path / "run").exists()
    assert data.store.damaged == 1
    if os.geteuid() == 0:
        path.write_bytes(_files.encode(Evil(), "none"))
        path.chmod(0o600)
        os.chown(path, 12345, 12345)
        assert data[0]["name"] == "n0" and not (tmp_path / "run").exists()


def test_a_folder_of_others_is_refused(tmp_path):
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(sonde.optimize.StoreError, match="0700"):
        cached("disk", tmp_path)
    folder.chmod(0o700)
    cached("disk", tmp_path).close()
    if os.geteuid() == 0:
        os.chown(folder, 12345, 12345)
        with pytest.raises(sonde.optimize.StoreError, match="somebody else"):
            cached("disk", tmp_path)


def test_a_full_disk_only_means_no_cache(tmp_path, monkeypatch):
    data = cached("disk", tmp_path)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sonde.optimize._cache.write_file", full)
    assert data[0]["name"] == data[0]["name"] == "n0" and data.hits == 0


# ---- stored values ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [b"\0bytes", "text", "lone \ud800", 1.5, None, {"a": [1, 2.0, ("x",)]}, b"", ""],
)
def test_values_come_back(tmp_path, value):
    path = tmp_path / "value"
    sonde.optimize.store(value, path)
    assert _values.same(sonde.optimize.load(path), value)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["value"]


def test_arrays_and_tensors_come_back(tmp_path):
    numpy = pytest.importorskip("numpy")
    rows = numpy.arange(12.0).reshape(3, 4).T
    values = [rows, numpy.float32(2), numpy.array(["a", None], dtype=object)]
    torch = __import__("sys").modules.get("torch")
    if torch is not None:
        values += [torch.arange(6).reshape(2, 3), torch.ones(2, dtype=torch.bfloat16)]
    for value in values:
        sonde.optimize.store(value, tmp_path / "value")
        assert _values.same(sonde.optimize.load(tmp_path / "value"), value)
    (tmp_path / "value").chmod(0o666)  # object of a type without code: from anybody
    sonde.optimize.store(rows, tmp_path / "value")
    (tmp_path / "value").chmod(0o666)
    assert _values.same(sonde.optimize.load(tmp_path / "value"), rows)


def test_what_can_run_code_is_loaded_from_private_files_only(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "value"
    path.write_bytes(_files.encode(Evil(), "gzip"))
    path.chmod(0o622)
    with pytest.raises(sonde.optimize.StoreError, match="others could have written"):
        sonde.optimize.load(path)
    path.chmod(0o600)
    tmp_path.chmod(0o777)
    with pytest.raises(sonde.optimize.StoreError, match="others could have written"):
        sonde.optimize.load(path)
    assert not (tmp_path / "run").exists()


def test_damaged_and_foreign_files_are_told(tmp_path):
    path = tmp_path / "value"
    sonde.optimize.store("text" * 100, path)
    whole = path.read_bytes()
    head = _files.HEAD
    fields = list(head.unpack_from(whole))
    fields[4] = 10  # expands to more than it says: a bomb
    for contents, says in (
        (whole[:10], "too short"),
        (b"PK" + whole[2:], "not a value stored"),
        (whole[:-1], "damaged"),
        (head.pack(*fields) + whole[head.size :], "length"),
    ):
        path.write_bytes(contents)
        with pytest.raises(sonde.optimize.StoreError, match=says):
            sonde.optimize.load(path)
    with pytest.raises(sonde.optimize.StoreError, match="no plain file"):
        sonde.optimize.load(tmp_path)
    with pytest.raises(FileNotFoundError):
        sonde.optimize.load(tmp_path / "missing")


def test_storing_leaves_the_old_file_when_it_fails(tmp_path):
    path = tmp_path / "value"
    sonde.optimize.store("old", path)
    with pytest.raises(Exception, match="pickle|local object"):
        sonde.optimize.store(lambda: 1, path)
    assert sonde.optimize.load(path) == "old" and os.listdir(tmp_path) == ["value"]


# ---- streams ---------------------------------------------------------------------------


def test_a_stream_holds_few_samples_at_a_time():
    alive, most = [0], [0]

    class Sample:
        def __init__(self):
            alive[0] += 1
            most[0] = max(most[0], alive[0])

        def __del__(self):
            alive[0] -= 1

    class Many(Rows):
        def __getitem__(self, index):
            return Sample()

    config = sonde.Config(streaming=True, chunk_size=10)
    data, _ = sonde.optimize.dataset(Many(500), config)
    assert sum(1 for _ in data) == 500 and most[0] <= 4 * 10


def test_leaving_a_stream_early_ends_its_thread_and_errors_arrive():
    config = sonde.Config(streaming=True, chunk_size=2)
    before = threading.active_count()
    data, _ = sonde.optimize.dataset(Rows(1000), config)
    for sample in data:
        if sample["name"] == "n5":
            break
    del sample
    gc.collect()
    for _ in range(100):
        if threading.active_count() == before:
            break
        time.sleep(0.05)
    assert threading.active_count() == before

    def breaks():
        yield 1
        raise OSError("disk gone")

    data, _ = sonde.optimize.dataset(breaks(), config)
    with pytest.raises(OSError, match="disk gone"):
        list(data)


# ---- memory ----------------------------------------------------------------------------


def test_a_scope_empties_caches_before_it_gives_up():
    limit = _limits.own_bytes() + (64 << 20)
    with sonde.optimize.memory(limit_bytes=limit, interval_s=0) as scope:
        scope.checkpoint()
        kept = scope.add_cache({})
        kept["x"] = bytearray(os.urandom(1 << 10)) * (96 << 10)  # 96 MiB
        scope.checkpoint()
        assert not kept and scope.relieved == 1 and scope.peak_bytes > limit


def test_a_scope_ends_with_a_clear_error_at_the_next_checkpoint():
    limit = _limits.own_bytes() + (64 << 20)
    scope = sonde.optimize.memory(limit_bytes=limit, interval_s=0.02)
    with pytest.raises(sonde.optimize.MemoryLimitError, match="MiB are used"), scope:
        held = bytearray(b"x") * (96 << 20)
        for _ in range(200):
            time.sleep(0.02)
            if scope.relieved:
                break
        scope.checkpoint()
        pytest.fail("the checkpoint let it pass")
    assert len(held) == 96 << 20
    with pytest.raises(MemoryError):
        with sonde.optimize.memory(limit_bytes=1, interval_s=0.01):
            time.sleep(0.2)


def test_a_callback_is_told_once_instead():
    told = []
    with sonde.optimize.memory(limit_bytes=1, on_limit=told.append, interval_s=0) as scope:
        scope.checkpoint()
        scope.checkpoint()
        scope.limit_bytes = 1 << 50
        scope.checkpoint()
        scope.limit_bytes = 1
        scope.checkpoint()
    assert told == [scope, scope]
    with pytest.raises(TypeError, match="clear"):
        scope.add_cache(3)
    with pytest.raises(ValueError, match="positive"):
        sonde.optimize.memory(limit_bytes=0)


def test_the_limit_is_the_cgroups_where_there_is_one(tmp_path, monkeypatch):
    group = tmp_path / "cgroup"
    group.mkdir()
    monkeypatch.setattr(_limits, "CGROUP", group)
    monkeypatch.setattr(_limits, "_cgroup_folder", lambda _: group)
    (group / "memory.max").write_text("max\n")
    (group / "cpu.max").write_text("max 100000\n")
    machine = _limits.total_bytes()
    assert machine > 1 << 26
    (group / "memory.max").write_text("67108864\n")
    (group / "memory.current").write_text("50000000\n")
    (group / "memory.stat").write_text("anon 1\ninactive_file 20000000\n")
    (group / "cpu.max").write_text("100000 100000\n")
    assert _limits.total_bytes() == 67108864 and _limits.used_bytes() == 30000000
    assert _limits.room_bytes(0.5) == 67108864 // 2 - 30000000
    assert _limits.cores() == 1


def test_shrinking_changes_types_and_no_value():
    numpy = pytest.importorskip("numpy")
    exact = numpy.array([0.5, 1.25, float("nan"), float("inf")])
    thirds = numpy.array([1 / 3, 2.0])
    huge = numpy.array([1e300, 1.0])
    ints = numpy.array([[1, -2], [300, 4]])
    data = {"a": [exact, thirds], "b": (ints, "text"), "c": huge, "t": ints.T}
    small = sonde.optimize.shrink(data)
    assert small["a"][0].dtype == numpy.float32 and small["a"][1].dtype == numpy.float64
    assert small["b"][0].dtype == numpy.int16 and small["b"][1] == "text"
    assert small["t"].flags["C_CONTIGUOUS"] and (small["t"] == ints.T).all()
    assert numpy.array_equal(small["a"][0], exact, equal_nan=True)
    rounded = sonde.optimize.shrink(data, allow=("precision",))
    assert rounded["a"][1].dtype == numpy.float32 and rounded["c"].dtype == numpy.float64
    assert sonde.optimize.shrink(data, sonde.Config(memory_efficient=False)) is data
    rows = numpy.arange(100_000) % 7 * 0.5
    ratio = sonde.optimize.bytes_of(sonde.optimize.shrink(rows)) / rows.nbytes
    assert ratio == 0.5
    with pytest.raises(ValueError, match="precision"):
        sonde.optimize.shrink(data, allow=("anything",))


def test_shrinking_tensors():
    torch = pytest.importorskip("torch")
    given = torch.arange(6, dtype=torch.float64).reshape(2, 3).T
    small = sonde.optimize.shrink([given, torch.tensor([70000]), torch.tensor([1 / 3])])
    assert small[0].dtype == torch.float32 and small[0].is_contiguous()
    assert torch.equal(small[0].double(), given) and small[1].dtype == torch.int32
    weight = torch.ones(2, dtype=torch.float64, requires_grad=True)
    assert sonde.optimize.shrink(weight) is weight
    third = torch.tensor([1 / 3], dtype=torch.float64)
    assert sonde.optimize.shrink(third).dtype == torch.float64
    assert sonde.optimize.shrink(third, allow=("precision",)).dtype == torch.float32


# ---- files -----------------------------------------------------------------------------


def test_every_way_of_reading_gives_the_file(tmp_path):
    path = tmp_path / "file"
    for size in (0, 1, 8191, 8192, 3 << 20):
        path.write_bytes(os.urandom(size))
        found = sonde.optimize.reader(path)
        for mode in ("plain", "buffered", "mapped", "ahead"):
            found.mode = mode
            assert found() == path.read_bytes() == b"".join(found)
    path.write_text("grün\n", encoding="utf-8")
    assert sonde.optimize.read(path, encoding="utf-8") == "grün\n"
    assert sonde.optimize.read(path) == "grün\n".encode()


def test_blocks_that_take_time_are_read_by_the_way_that_is_proven(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(os.urandom(2 << 20))
    config = sonde.Config(buffer_size=1 << 18)
    digest = hashlib.sha256()
    found = sonde.optimize.reader(path, config, process=hashlib.sha256().update)
    assert found.mode in ("buffered", "mapped", "ahead")
    assert found.receipt.accepted == (found.mode != "buffered")
    names = [t.name for t in found.receipt.trials]
    assert names == ["buffered", "mapped", "ahead"]
    for block in found:
        digest.update(block)
    assert digest.digest() == hashlib.sha256(path.read_bytes()).digest()


# ---- values and gains ------------------------------------------------------------------


def test_the_same_is_the_same_to_the_bit():
    nan = float("nan")
    assert _values.same([nan, {"a": (1, "x")}], [nan, {"a": (1, "x")}])
    assert _values.same(struct.pack("d", 1), struct.pack("d", 1))
    for a, b in ((0.0, -0.0), (1, 1.0), (1, True), ([1], (1,)), ({1: 2}, {1: 3})):
        assert not _values.same(a, b)
    assert not _values.same({1: 1, 2: 2}, {2: 2, 1: 1})  # order is order


def test_gains_come_with_bounds_that_hold():
    halved = gain_of([(2.0, 1.0), (4.0, 2.0), (2.2, 1.1)] * 4, 0.05)
    assert halved.share == pytest.approx(0.5) and halved.pairs == 12
    assert halved.low == pytest.approx(0.5) == halved.high and halved.ratio == 2
    random.seed(7)
    wrong = 0
    for _ in range(200):  # no difference: the bound of 1 % is passed by chance at most so
        pairs = [(random.gauss(1, 0.1), random.gauss(1, 0.1)) for _ in range(8)]
        wrong += gain_of(pairs, 0.01).low > 0
    assert wrong <= 6


# ---- without torch and numpy -----------------------------------------------------------


def test_nothing_but_the_standard_library_is_needed(tmp_path):
    script = """
import sys
sys.modules["torch"] = sys.modules["numpy"] = None
import sonde
o = sonde.optimize
data, _ = o.dataset([b"a", b"b"] * 5, sonde.Config(cache_dir=sys.argv[1] + "/c"),
                    where="disk")
assert data[0] == data[0] == b"a" and data.hits == 1
data, _ = o.dataset(list("abcdef"))
assert data[1] == data[1] == "b"
with o.preprocessing([str.upper], list("abc") * 5) as pipeline:
    assert pipeline(["x", "y"]) == ["X", "Y"]
assert [len(c) for c in o.chunks("abcdef", sonde.Config(chunk_size=4))] == [4, 2]
o.store({"a": 1}, sys.argv[1] + "/v")
assert o.load(sys.argv[1] + "/v") == {"a": 1}
assert o.shrink([1.0]) == [1.0]
with o.memory() as scope:
    scope.checkpoint()
assert o.read(__file__ if "__file__" in globals() else sys.argv[1] + "/v")
try:
    o.loader([1, 2, 3])
except ImportError as error:
    print(error)
"""
    done = python("-c", script, tmp_path)
    assert "loader() needs torch" in done.stdout
    loaded = "import sys, sonde; sonde.optimize; print({'torch', 'numpy'} & set(sys.modules))"
    assert python("-c", loaded).stdout == "set()\n"
