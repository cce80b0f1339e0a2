"""sonde.optimize.preprocessing: the right way for functions whose truth is known."""

import os
import random
import signal
import time

import pytest

import sonde
from sonde.optimize import _limits
from sonde.optimize._values import same

def nap(x):
    time.sleep(0.004)
    return x + 1


def burn(x):
    for i in range(60_000):
        x = (x * 31 + i) % 1_000_003
    return x


def made(functions, samples, allow=(), **fields):
    return sonde.optimize.preprocessing(
        functions, samples, sonde.Config(**fields), budget_s=40, allow=allow
    )


def notes(pipeline):
    return {t.name: t.note for t in pipeline.receipt.trials}


@pytest.mark.timing
def test_waiting_goes_to_threads_or_processes():
    with made([nap, nap], list(range(20)), preprocessing_workers=4) as pipeline:
        assert pipeline.strategy in ("threads", "processes") and pipeline.receipt.accepted
        assert pipeline(list(range(50))) == list(range(2, 52))
        assert pipeline.receipt.analysis["cpu_share"] < 0.5
        (found,) = pipeline.receipt.bottlenecks
        assert found["id"] == "preprocessing_bound" and "waiting" in found["description"]


@pytest.mark.timing
def test_computing_in_python_goes_to_processes():
    cores = _limits.cores()
    if cores < 2:
        pytest.skip("one core")
    with made([burn], list(range(16)), batch_preprocessing=False) as pipeline:
        assert pipeline.strategy != "threads"  # which cannot
        assert pipeline([1, 2, 3]) == [burn(1), burn(2), burn(3)]
        if pipeline.strategy != "processes" and os.getloadavg()[0] > cores - 1:
            pytest.skip("the other cores are taken")
        assert pipeline.strategy == "processes", pipeline.receipt


@pytest.mark.timing
def test_what_is_cheap_stays_sequential():
    pipeline = made([abs], list(range(-50, 50)))
    assert pipeline.strategy == "sequential" and not pipeline.receipt.accepted
    assert pipeline(-3) == 3 and pipeline([-1, 2]) == [1, 2]


@pytest.mark.timing
def test_what_repeats_is_remembered():
    words = ["same", "other", "same", "third"] * 10

    def slow_upper(text):
        time.sleep(0.002)
        return text.upper()

    pipeline = made([slow_upper], words, preprocessing_workers=2)
    assert pipeline.strategy == "cached" and pipeline.receipt.analysis["repeated"] == 37
    assert pipeline(words) == [w.upper() for w in words]
    assert pipeline.hit_rate == 37 / 40
    assert pipeline("same") == "SAME"


def test_remembered_results_are_nobody_elses():
    def split(text):
        time.sleep(0.002)
        return [text]

    pipeline = made([split], ["a b"] * 20, parallel_preprocessing=False)
    assert pipeline.strategy == "cached"
    first = pipeline("a b")
    first.append("mine")
    assert pipeline("a b") == ["a b"]


@pytest.mark.timing
def test_functions_that_take_batches_get_them():
    calls = []

    def tokenizer(texts):
        """As of a library: each call costs, a list is one call."""
        calls.append(texts)
        time.sleep(0.003)
        return [t.split() for t in texts] if isinstance(texts, list) else texts.split()

    texts = [f"text {i}" for i in range(30)]
    pipeline = made([str.lower, tokenizer, len], texts, parallel_preprocessing=False)
    assert pipeline.strategy == "batched" and pipeline.receipt.gain.low > 0.5
    calls.clear()
    assert pipeline(texts) == [2] * 30
    assert len(calls) == 1 and len(calls[0]) == 30
    assert pipeline("one text here") == 3


def test_batches_with_other_results_are_not_taken():
    def normalised(x):
        time.sleep(0.002)
        if isinstance(x, list):
            return [y / max(x) for y in x]
        return 1.0

    pipeline = made([normalised], [1.0, 2.0, 3.0, 4.0], parallel_preprocessing=False)
    assert pipeline.strategy == "sequential" and "batched" not in notes(pipeline)


def test_a_function_that_hands_lists_back_does_not_take_batches():
    def cleaned(x):
        time.sleep(0.002)
        return "" if x is None else x  # of a list, it is the list

    pipeline = made([cleaned], ["a", "b", "c", "d"], parallel_preprocessing=False)
    assert pipeline.strategy == "sequential" and pipeline(["a", None]) == ["a", ""]


def test_arrays_are_stacked_where_that_is_the_same_to_the_bit():
    numpy = pytest.importorskip("numpy")

    def scaled(x):
        time.sleep(0.001)
        return numpy.floor(x * 0.1)

    def by_its_own_mean(x):
        time.sleep(0.001)
        return x - x.mean()

    fields = dict(parallel_preprocessing=False, allow=("stack",))
    rows = [numpy.random.rand(64) for _ in range(20)]
    assert made([scaled], rows, parallel_preprocessing=False).strategy == "sequential"
    assert made([by_its_own_mean], rows, **fields).strategy == "sequential"
    pipeline = made([scaled], rows, **fields)
    assert same(pipeline(rows), [scaled(r) for r in rows])
    assert pipeline.strategy == "batched"
    ragged = [numpy.ones(3), numpy.ones(4)]
    assert same(pipeline(ragged), [scaled(r) for r in ragged])


def test_random_results_are_left_alone_unless_allowed():
    def jitter(x):
        time.sleep(0.003)
        return x + random.random()

    random.seed(1)
    pipeline = made([jitter], list(range(20)))
    assert pipeline.strategy == "sequential" and "random" in pipeline.receipt.reason
    now = random.random()
    random.seed(1)
    assert now == random.random()  # measuring put the generator back
    with made([jitter], list(range(20)), allow=("random",)) as pipeline:
        assert pipeline.strategy in ("threads", "processes")


def test_functions_that_change_their_input_keep_doing_so():
    def fill(row):
        time.sleep(0.003)
        row.append(1)
        return row

    samples = [[i] for i in range(12)]
    with made([fill], samples) as pipeline:
        assert samples == [[i] for i in range(12)]  # measured on copies
        assert pipeline.strategy in ("threads", "sequential")
        given = [[5], [6]]
        assert pipeline(given) == [[5, 1], [6, 1]] == given
        assert pipeline([7]) == [7, 1]  # one sample: samples are lists here


@pytest.mark.timing
def test_closures_work_and_what_cannot_be_sent_stays_here():
    def unsendable(x):
        time.sleep(0.003)
        return lambda: x

    pipeline = made([unsendable], list(range(12)))
    assert "sequential" == pipeline.strategy  # results cannot be compared
    factor = 3
    with made([lambda x: (time.sleep(0.004), x * factor)[1]], list(range(12))) as pipeline:
        assert pipeline([1, 2]) == [3, 6] and not notes(pipeline)["processes"]


def test_an_exception_is_the_callers():
    def picky(x):
        time.sleep(0.003)
        if x == 99:
            raise KeyError("mine")
        return x

    with made([picky], list(range(12))) as pipeline:
        with pytest.raises(KeyError, match="mine"):
            pipeline([1, 2, 99])
        assert pipeline([1, 2]) == [1, 2]


def test_a_dead_worker_is_told_and_the_next_call_works():
    def fatal(x):
        if x == 99:
            os.kill(os.getpid(), signal.SIGKILL)
        return x

    ways = sonde.optimize._ways
    way = ways.Processes([fatal], 2)
    assert way.many([1, 2, 3]) == [1, 2, 3]
    with pytest.raises(sonde.optimize.WorkerDied, match="worker died"):
        way.many([1, 99, 2])
    assert way.many([4, 5]) == [4, 5]
    way.close()


def test_closing_ends_the_workers_and_work_goes_on():
    pipeline = made([nap], list(range(20)), preprocessing_workers=4)
    assert pipeline.strategy != "sequential"
    pipeline.close()
    assert pipeline.strategy == "sequential" and pipeline([1, 2]) == [2, 3]
    pipeline.close()


def test_without_samples_nothing_can_be_measured():
    with pytest.raises(ValueError, match="samples"):
        made([abs], [])
