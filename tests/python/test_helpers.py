"""bench, loaders, preprocessing, code; with torch also training, memory, context."""

import collections
import random
import time

import pytest

import sonde


class Loader:
    """Batches of lists, each after a known time."""

    def __init__(self, batches=6, size=4, seconds=0.01):
        self.batches, self.size, self.seconds = batches, size, seconds

    def __iter__(self):
        for _ in range(self.batches):
            time.sleep(self.seconds)
            yield list(range(self.size))


def test_bench_times_a_function():
    stats = sonde.bench(time.sleep, 0.002, runs=20, warmup=2)
    assert stats.runs == stats.num_runs == 20 and stats.warmup == 2
    assert 0.002 <= stats.min_s <= stats.median_s <= stats.max_s
    assert stats.ci_low_s <= stats.mean_s <= stats.ci_high_s
    assert stats.mean == pytest.approx(stats.mean_s * 1e3)
    calls = []
    sonde.bench(calls.append, 1, runs=3, warmup=0)
    assert len(calls) == 3


def test_bench_passes_exceptions_on_and_checks_its_arguments():
    def fails():
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        sonde.bench(fails, runs=5)
    with pytest.raises(ValueError, match="run"):
        sonde.bench(fails, runs=0)


def test_a_loader_is_timed_batch_by_batch():
    metrics = sonde.profile_loader(Loader(), num_batches=5)
    assert metrics.batches == 5 and metrics.samples == 20
    assert 0.01 <= metrics.avg_batch_time < 1
    assert metrics["throughput"] == pytest.approx(4 / metrics.avg_batch_time, rel=0.01)
    assert metrics.avg_memory_per_batch is None  # lists have no arrays
    assert sonde.profile_loader(Loader(batches=2), num_batches=9).batches == 2
    assert sonde.profile_loader([], num_batches=9).avg_batch_time is None
    with pytest.raises(KeyError):
        metrics["nonsense"]


def test_preprocessing_is_timed_by_sample():
    seen = []

    def prepare(text):
        seen.append(text)
        time.sleep(0.001)

    metrics = sonde.profile_preprocessing(prepare, ["a", "b"], num_samples=10)
    assert metrics.samples == 10 and set(seen) == {"a", "b"}
    assert 0.001 <= metrics.avg_processing_time < 0.5
    assert metrics.throughput == pytest.approx(10 / metrics.total_time)
    assert sonde.profile_preprocessing(len, "one text", num_samples=5).samples == 5


def hot():
    total = 0
    for i in range(400_000):
        total += i * i
    return total


def test_code_is_profiled_by_function():
    found = sonde.profile_code(hot)
    assert found.result == hot() and found.operation.duration > 0
    assert found.bottleneck_functions[0]["name"] == "hot"
    assert any("hot" in advice for advice in found.recommendations)
    waits = sonde.profile_code(time.sleep, 0.6)  # a busy machine is late
    assert any("waited" in advice for advice in waits.recommendations)
    off = sonde.profile_code(hot, config=sonde.Config(enabled=False))
    assert off.result == hot() and off.functions == []


# ---- torch -----------------------------------------------------------------------------


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.fixture
def model(torch):
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(16, 32),
        torch.nn.ReLU(),
        torch.nn.Dropout(0.5),
        torch.nn.Linear(32, 4),
    )


@pytest.fixture
def loader(torch):
    data = torch.utils.data.TensorDataset(
        torch.randn(64, 16), torch.randint(0, 4, (64,))
    )
    return torch.utils.data.DataLoader(data, batch_size=8)


def test_a_torch_loader_has_memory_and_samples(loader):
    metrics = sonde.profile_loader(loader, num_batches=4)
    assert metrics.samples == 32
    assert metrics.avg_memory_per_batch == pytest.approx((8 * 16 * 4 + 8 * 8) / 2**20)


def test_training_is_profiled_by_phase_and_leaves_the_model_as_it_was(
    torch, model, loader
):
    optimizer = torch.optim.Adam(model.parameters())
    before = [p.detach().clone() for p in model.parameters()]
    model.eval()
    metrics = sonde.profile_training(
        model,
        loader,
        num_batches=3,
        optimizer=optimizer,
        loss_fn=torch.nn.functional.cross_entropy,
        max_norm=1.0,
    )
    assert metrics.batches == 3 and metrics.loss > 0
    parts = [
        metrics.avg_data_time,
        metrics.avg_transfer_time,
        metrics.avg_forward_time,
        metrics.avg_backward_time,
        metrics.avg_gradient_time,
        metrics.avg_optimizer_time,
    ]
    assert all(p > 0 for p in parts)
    assert sum(parts) <= metrics.avg_total_time
    assert metrics.throughput == pytest.approx(1 / metrics.avg_total_time)
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters()))
    assert all(p.grad is None for p in model.parameters())
    assert optimizer.state_dict()["state"] == {} and not model.training


def test_training_without_optimizer_and_with_mixed_precision(torch, model, loader):
    metrics = sonde.profile_training(model, loader, 2, amp=True)
    assert metrics.avg_optimizer_time is None and metrics.avg_gradient_time is None


def test_training_phases_reach_the_report(run):
    pytest.importorskip("torch")
    answer = run(
        """
        import torch, sonde
        model = torch.nn.Linear(8, 2)
        data = [(torch.randn(4, 8), torch.randint(0, 2, (4,))) for _ in range(5)]
        sonde.profile_training(model, data, 5, torch.optim.SGD(model.parameters(), lr=0.1),
                               torch.nn.functional.cross_entropy)
        """
    )
    phases = {p["phase"] for p in answer["phases"]}
    assert {"data_loading", "forward", "backward", "optimizer"} <= phases
    assert answer["summary"]["step_ms"]["count"] in (4, 5)


def test_forward_backward_and_step_are_timed(torch, model, loader):
    batch, loss = next(iter(loader)), torch.nn.functional.cross_entropy
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = [p.detach().clone() for p in model.parameters()]
    forward = sonde.profile_forward(model, batch, num_runs=5, warmup_runs=1)
    backward = sonde.profile_backward(model, batch, loss, num_runs=5, warmup_runs=1)
    step = sonde.profile_training_step(model, batch, optimizer, loss, num_runs=5)
    assert forward.mean > 0 and backward.mean > 0 and step.num_runs == 5
    assert step.min >= forward.min / 2
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters()))
    assert all(p.grad is None for p in model.parameters())


def test_memory_is_broken_down(torch, model, loader):
    batch, loss = next(iter(loader)), torch.nn.functional.cross_entropy
    optimizer = torch.optim.Adam(model.parameters())
    parts = sonde.memory_breakdown(model, batch, loss_fn=loss)
    floats = 16 * 32 + 32 + 32 * 4 + 4
    assert parts["parameters"] == parts["gradients"] == floats * 4 / 2**20
    # At least the input, the first layer's output and the log-probabilities are kept.
    assert parts["forward_activations"] >= (8 * 16 + 8 * 32 + 8 * 4) * 4 / 2**20
    assert parts["optimizer_state"] is None and parts["peak"] is None
    loss(model(batch[0]), batch[1]).backward()
    gradients = [p.grad.clone() for p in model.parameters()]
    optimizer.step()
    parts = sonde.memory_breakdown(model, batch, optimizer, loss)
    assert parts["optimizer_state"] >= 2 * floats * 4 / 2**20
    assert all(torch.equal(a, p.grad) for a, p in zip(gradients, model.parameters()))


def test_the_context_gives_the_same_numbers_twice_and_restores_everything(torch, model):
    numpy = pytest.importorskip("numpy")
    model.train()
    model[0].eval()
    states = (
        random.getstate(),
        torch.get_rng_state(),
        numpy.random.get_state()[1].tolist(),
    )

    def numbers():
        with sonde.ProfilingContext(model, seed=42):
            assert not any(m.training for m in model.modules())
            x = torch.randn(4, 16)
            return model(x).sum().item(), random.random(), numpy.random.rand()

    assert numbers() == numbers()
    assert model.training and model[2].training and not model[0].training
    after = (
        random.getstate(),
        torch.get_rng_state(),
        numpy.random.get_state()[1].tolist(),
    )
    assert states[0] == after[0] and torch.equal(states[1], after[1])
    assert states[2] == after[2]
    with sonde.ProfilingContext(model, eval_mode=False):
        assert model.training and not model[2].training
    with pytest.raises(ZeroDivisionError), sonde.ProfilingContext(model):
        1 / 0
    assert model.training


def test_training_and_inference_side_by_side():
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Dropout(0.5))
    optimizer = torch.optim.Adam(model.parameters())
    before = [p.detach().clone() for p in model.parameters()]
    model.eval()
    batch = (torch.randn(16, 64), torch.randn(16, 64))
    modes = sonde.profile_modes(
        model, batch, optimizer, torch.nn.functional.mse_loss, num_runs=20, warmup_runs=2
    )
    assert modes.training.runs == modes.inference.runs == 20
    # The shortest of each: a pause of the machine is in the mean.
    assert modes.training.min_s > modes.inference.min_s and modes.samples == 16
    assert modes.ratio == modes.training.mean_s / modes.inference.mean_s
    assert modes.inference_samples_per_s == 16 / modes.inference.mean_s
    assert modes.training_samples_per_s == 16 / modes.training.mean_s
    assert modes.to_dict()["ratio"] == modes.ratio
    assert not model.training
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters()))


BATCHES = [
    ({"ids": [[1, 2], [3, 4], [5, 6]], "labels": [0, 1, 0]}, 3),
    ((["a", "b", "c"], [0, 1, 2]), 3),
    ([[1, 2], [3, 4, 5]], 2),
    ([[1, 2], [3, 4], [5, 6]], None),
    (["a", "b"], 2),
]


@pytest.mark.parametrize("batch, size", BATCHES)
def test_samples_of_batches_that_are_no_arrays_are_counted_or_unknown(batch, size):
    found = sonde.profile_loader([batch] * 3, 3)
    assert found.samples == (None if size is None else 3 * size)
    assert (found.throughput is None) == (size is None)


def test_samples_of_batches_that_nobody_collated_are_counted():
    torch = pytest.importorskip("torch")
    row = torch.ones(5)
    batches = [[(row, 1), (row, 0)], [{"x": row}, {"x": row}], [torch.ones(2, 3), row[:2]]]
    assert [sonde.profile_loader([b], 1).samples for b in batches] == [2, 2, 2]


def test_model_helpers_leave_batch_norm_alone_and_take_named_tuples():
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    before = {k: v.clone() for k, v in model.state_dict().items()}
    Batch = collections.namedtuple("Batch", "x")
    batch = Batch(torch.randn(8, 3))
    sonde.profile_forward(model, batch, 2, 1)
    sonde.profile_backward(model, batch, None, 2, 1)
    sonde.memory_breakdown(model, batch)
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())


def test_activations_are_the_memory_behind_views_each_once():
    torch = pytest.importorskip("torch")

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(1))

        def forward(self, x):
            whole = x * 2.0  # 1 MiB, of which views are kept
            row = torch.ones(1).expand(2**18)  # 4 bytes
            return whole[:8] * self.weight + (self.weight.expand(2**18) * row).sum()

    found = sonde.memory_breakdown(Model(), torch.ones(2**18))["forward_activations"]
    assert found == pytest.approx(1.0, abs=0.01)


def test_a_profiling_context_switches_dropout_inside_layers_off_too():
    torch = pytest.importorskip("torch")
    model = torch.nn.LSTM(2, 2, num_layers=2, dropout=0.5)
    x = torch.ones(4, 1, 2)
    with sonde.ProfilingContext(model, eval_mode=False, seed=None):
        assert torch.equal(model(x)[0], model(x)[0]) and model.training
    assert model.dropout == 0.5
