"""Operation records: usable inside the block, after it, and when switched off."""

import asyncio
import fractions
import time

import pytest

import sonde


def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_the_record_is_usable_inside_and_after():
    with sonde.operation("training", component="evolution", team="x") as op:
        spin(0.02)
        assert op.duration is None and 0.02 <= op.elapsed
        op.metrics["accuracy"] = 0.93
        op.metric("note", "text")
    assert op.duration >= op.elapsed - 1e-9 and op.duration >= 0.02
    assert 0.019 <= op.cpu_s <= op.duration + 0.01
    assert op.custom_metrics == {"accuracy": 0.93, "note": "text"}
    assert op.end_time == pytest.approx(op.start_time + op.duration)
    assert op.to_dict()["component"] == "evolution" and op.tags == {"team": "x"}
    assert op.gpu_mem_peak_mb is None


def test_memory_before_after_and_peak_are_measured():
    with sonde.operation("allocates") as op:
        block = bytearray(64 << 20)
        block[::4096] = b"x" * len(block[::4096])
        del block
    assert op.mem_peak_mb - op.mem_before_mb > 60
    assert op.mem_after_mb < op.mem_peak_mb - 30


def test_throughput_of_a_block():
    with sonde.operation("inference") as op:
        assert op.throughput is None
        time.sleep(0.01)
        op.samples = 100
        assert op.throughput > 0
    assert op.throughput == pytest.approx(100 / op.duration)


def test_switched_off_it_accepts_metrics_and_measures_nothing():
    with sonde.operation("off", enabled=False) as op:
        op.metrics["accuracy"] = 0.5
        assert op.elapsed is None
    assert op.duration is None and op.mem_peak_mb is None
    assert op.metrics == {"accuracy": 0.5}


def test_an_exception_ends_the_operation_and_passes():
    with pytest.raises(KeyError):
        with sonde.operation("fails") as op:
            raise KeyError
    assert op.duration is not None


def test_nested_operations_have_paths_cpu_and_memory_in_the_report(run):
    answer = run(
        """
        import sonde
        with sonde.operation("experiment"):
            with sonde.operation("training", component="trainer"):
                for epoch in range(3):
                    with sonde.operation(f"epoch {epoch}") as op:
                        op.metrics["loss"] = 1.0 / (epoch + 1)
        """
    )
    paths = answer.paths()
    assert paths[("experiment", "training", "epoch 2")] == 1
    epoch = answer.one("epoch 1")
    assert epoch["custom"]["loss"]["last"] == 0.5
    assert epoch["mem_peak_mb"] > 1 and epoch["cpu_s"] is not None


def test_only_memory_hungry_calls_are_reported():
    seen = []

    @sonde.profile_memory_intensive(threshold_mb=40, on_exceeded=seen.append)
    def grow(mb):
        block = bytearray(mb << 20)
        block[::4096] = b"x" * len(block[::4096])
        return len(block)

    assert grow(1) == 1 << 20 and not seen
    assert grow(64) == 64 << 20 and len(seen) == 1
    assert seen[0].mem_peak_mb - seen[0].mem_before_mb > 40


def test_an_open_operation_that_is_dropped_does_no_harm():
    for _ in range(100):
        sonde.Operation("dropped").begin()
    with sonde.operation("after") as op:
        pass
    assert op.duration is not None


def fill(mb):
    block = bytearray(mb << 20)
    block[::4096] = b"x" * len(block[::4096])
    time.sleep(0.03)


def test_memory_of_generators_coroutines_and_class_methods_is_watched():
    seen = []
    watch = sonde.profile_memory_intensive(
        threshold_mb=50, on_exceeded=lambda op: seen.append(op.name.split(".")[-1])
    )

    @watch
    def generator():
        yield fill(100)

    @watch
    async def coroutine():
        fill(100)

    @watch
    async def small():
        fill(1)

    class Trainer:
        @watch
        @classmethod
        def train(cls):
            fill(100)
            return cls

    fill(200)  # an earlier peak
    list(generator())
    asyncio.run(coroutine())
    asyncio.run(small())
    assert Trainer.train() is Trainer
    assert seen == ["generator", "coroutine", "train"]


def test_metrics_of_every_kind_of_number_reach_the_report(tmp_path):
    with sonde.session(output=tmp_path / "run") as session:
        with sonde.operation("op") as op:
            op.metrics["fraction"] = fractions.Fraction(5, 2)  # as numpy's: a Real
            op.metrics.setdefault("default", 4.0)
            op.metrics |= {"merged": 5.0}
    found = session.report().operation("op")["custom"]
    assert {"fraction", "default", "merged"} <= set(found)
