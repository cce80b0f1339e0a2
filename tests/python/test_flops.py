"""Counting what torch runs; profilers and scaling experiments over torch models."""

import pytest

import sonde

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from flops_modules import cases  # noqa: E402

CASES = cases()


@pytest.mark.parametrize("case", CASES, ids=[c[0] for c in CASES])
def test_twenty_modules_have_the_products_worked_out_by_hand(case):
    name, module, inputs, forward, both = case
    counted = sonde.flops(module, inputs)
    assert counted.coverage == 1, counted.unknown
    if forward is not None:
        assert counted.macs == forward
        assert counted.matrix_flops == 2 * forward
    if both is not None:
        assert sonde.flops(module, inputs, backward=True).macs == both
    assert counted.by_layer[""].flops == counted.total


def test_modules_in_evaluation_mode_run_fused_and_count_the_same():
    for name in ("encoder layer", "multi-head attention"):
        _, module, inputs, forward, _ = next(c for c in CASES if c[0] == name)
        module.eval()
        counted = sonde.flops(module, inputs)
        module.train()
        assert counted.macs == forward, counted
        assert counted.coverage == 1


def test_layers_add_up():
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Sequential(nn.Linear(16, 4), nn.GELU()))
    counted = sonde.flops(model, torch.randn(10, 8))
    assert counted.by_layer["0"].macs == 10 * 8 * 16
    assert counted.by_layer["2.0"].macs == 10 * 16 * 4
    assert counted.by_layer["2"].flops == counted.by_layer["2.0"].flops + counted.by_layer["2.1"].flops
    assert counted.by_layer["2.1"].elementwise == 4 * 10 * 4
    assert counted.parameters == 8 * 16 + 16 + 64 + 4
    assert counted.total == 2 * counted.macs + counted.elementwise
    assert "addmm" in str(counted)


def recurrent_by_hand(kind, x, hidden, layers=1, directions=1, projection=0):
    """Every gate of every layer and direction looks at the input and at the state."""
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
    positions, wide, state = x.numel() // x.shape[-1], x.shape[-1], projection or hidden
    macs = 0
    for _ in range(layers):
        macs += directions * (gates * hidden * (wide + state) + projection * hidden)
        wide = directions * state
    return positions * macs


RECURRENT = [
    ("LSTM", {}), ("GRU", {}), ("RNN", {}),
    ("LSTM", {"num_layers": 2, "bidirectional": True}),
    ("GRU", {"num_layers": 3}), ("RNN", {"bidirectional": True}),
    ("LSTM", {"proj_size": 5}), ("GRU", {"bias": False}),
]  # fmt: skip


@pytest.mark.parametrize("kind, options", RECURRENT, ids=str)
def test_recurrent_layers_are_counted_however_torch_runs_them(kind, options):
    torch.manual_seed(0)
    x, module = torch.randn(7, 3, 12), getattr(nn, kind)(12, 20, **options)
    by_hand = recurrent_by_hand(
        kind, x, 20, options.get("num_layers", 1), 1 + options.get("bidirectional", False),
        options.get("proj_size", 0),
    )
    counted = sonde.flops(module, x)
    assert counted.macs == by_hand and counted.coverage == 1
    packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([7, 4, 2]))
    assert sonde.flops(module, packed).macs == by_hand * 13 // 21
    with torch.inference_mode(), sonde.count_flops() as counter:
        module(x)
    assert counter.result().macs == by_hand and counter.result().coverage == 1
    assert counter.result().elementwise == counted.elementwise
    # What cuDNN is given for the same call must come to the same.
    from sonde._recurrent import RULES

    mode = {"RNN": 1, "LSTM": 2, "GRU": 3}[kind]
    given = (x, module._flat_weights, 4, None, None, None, mode)
    assert RULES["_cudnn_rnn"](given, {}, None) == (by_hand, counted.elementwise)
    backward = (x, module._flat_weights, *[None] * 8, mode)
    assert RULES["_cudnn_rnn_backward"](backward, {}, None)[0] == 2 * by_hand
    trained = sonde.flops(module, x, backward=True)
    assert trained.macs > 2 * by_hand and trained.coverage == 1, trained.unknown


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_cells_are_counted(kind):
    x = torch.randn(3, 12)
    cell = getattr(nn, f"{kind}Cell")(12, 20)
    counted = sonde.flops(cell, x)
    assert counted.macs == recurrent_by_hand(kind, x, 20) and counted.coverage == 1
    if kind == "RNN":
        return
    # As CUDA does it without cuDNN: two products, then one operator for the gates.
    from sonde._recurrent import GATES, RULES

    gates = torch.empty(3, 20 * GATES[kind.lower()])
    bias = torch.empty(gates.shape[1])
    rule = RULES[f"_thnn_fused_{kind.lower()}_cell"]
    assert rule((gates, gates, x, bias, bias), {}, None) == (0, counted.elementwise)


def test_what_inference_mode_hides_is_taken_apart():
    model = nn.Sequential(nn.Conv1d(7, 3, 3), nn.LayerNorm(10), nn.Dropout())
    x = torch.randn(2, 7, 12)
    plain = sonde.flops(model.eval(), x)
    with torch.inference_mode(), sonde.count_flops(model) as counter:
        model(x)
    assert counter.result().total == plain.total and counter.result().coverage == 1
    assert counter.result().by_layer["0"].macs == 2 * 10 * 3 * 21


def test_bytes_are_operands_read_and_results_written():
    a, b = torch.randn(6, 4), torch.randn(4, 5)
    with sonde.count_flops() as counter:
        a.t().reshape(4, 6).t()[:3]  # views: nothing moves, but for the copy in reshape
        a @ b
        torch.nn.functional.embedding(torch.tensor([0, 2]), a)
        a + torch.ones(1).expand(6, 4)
    counted = counter.result().by_operator
    assert counted["mm"].bytes == 4 * (24 + 20 + 30)
    assert counted["embedding"].bytes == 2 * 4 * 8
    assert counted["add"].bytes == 4 * (24 + 1 + 24)
    assert counted["t"].bytes == 0 and counter.result().bytes > 0


def test_an_operator_without_a_rule_is_never_silent():
    x = torch.randn(8, 8)
    with sonde.count_flops() as counter:
        torch.linalg.eigh(x + x.T)
    unknown = counter.result().unknown
    assert unknown and unknown[0].share > 0 and counter.result().coverage < 1


def test_graph_operators_are_counted():
    x, index = torch.randn(50, 4), torch.randint(10, (50,))
    with sonde.count_flops() as counter:
        torch.zeros(10, 4).index_add(0, index, x)
        torch.zeros(10, 4).scatter_add(0, index.unsqueeze(1).expand(-1, 4), x)
        torch.zeros(10, 4).scatter_reduce(0, index.unsqueeze(1).expand(-1, 4), x, "mean")
    counted = counter.result()
    for name in ("index_add", "scatter_add", "scatter_reduce"):
        assert counted.by_operator[name].elementwise == 200, counted
    assert counted.coverage == 1


def test_an_unknown_operator_is_listed_with_its_share():
    x = torch.randn(20, 20)
    with sonde.count_flops() as counter:
        torch.linalg.svd(x)
        x + x
    counted = counter.result()
    assert [u.name for u in counted.unknown] == ["_linalg_svd"]
    assert 0 < counted.unknown[0].share < 1
    assert counted.coverage == pytest.approx(1 - counted.unknown[0].share)
    assert "_linalg_svd" in str(counted)


def test_training_steps_count_too_and_nothing_is_left_behind():
    model = nn.Linear(4, 4)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(2, 4)).sum().backward()
    before = [p.grad.clone() for p in model.parameters()]
    sonde.flops(model, torch.randn(2, 4), backward=True)
    assert all(torch.equal(a, p.grad) for a, p in zip(before, model.parameters()))
    assert not model._forward_hooks and not model._forward_pre_hooks
    with sonde.count_flops(model) as counter:
        model(torch.randn(2, 4)).sum().backward()
        optimizer.step()
    assert counter.result().coverage == 1, counter.result().unknown
    assert counter.result().by_layer["(outside)"].flops > 0


def test_an_error_inside_the_block_is_the_program_s_own():
    with pytest.raises(RuntimeError, match="shape"):
        with sonde.count_flops():
            torch.randn(3, 4) @ torch.randn(3, 4)
    torch.randn(2, 2) @ torch.randn(2, 2)  # the mode is gone


# ---- Profilers as objects ------------------------------------------------------------------


def test_the_runtime_profiler_profiles_all():
    model = nn.Linear(4, 2)
    profiler = sonde.RuntimeProfiler(model, num_runs=5, warmup_runs=1)
    batch = (torch.randn(8, 4), torch.randn(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    results = profiler.profile_all(batch, optimizer=optimizer, loss_fn=nn.MSELoss())
    assert set(results) == {"forward", "backward", "training_step"}
    assert all(r.num_runs == 5 and r.min <= r.mean <= r.max for r in results.values())


def test_memory_of_a_known_allocation():
    def work():
        return torch.ones(64 << 18).sum().item()  # 64 MiB

    stats = sonde.profile_memory_usage(work)
    if stats.peak_mb is None:
        pytest.skip("this system does not tell the peak")
    if stats.device == "cpu":
        assert 55 < stats.peak_mb < 160


def test_scaling_experiments_over_a_factory():
    class Net(nn.Module):
        def __init__(self, num_layers):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(num_layers))

        def forward(self, x, edge_index):
            for layer in self.layers:
                x = layer(x).index_add(0, edge_index[1], x[edge_index[0]])
            return x

    experiment = sonde.ScalingExperiment(lambda num_layers=2, **_: Net(num_layers), num_runs=3, warmup_runs=1)
    nodes = experiment.run_node_scaling([50, 100, 200])
    layers = experiment.run_layer_scaling([1, 2], num_nodes=50)
    assert nodes.flops[1] == 2 * nodes.flops[0] and nodes.flops[2] == 4 * nodes.flops[0]
    assert layers.flops[1] == 2 * layers.flops[0]
    assert len(nodes.exponents) == 2 and nodes.to_dict()["parameter_values"] == [50, 100, 200]
    assert "num_nodes" in experiment.summary()


def test_synthetic_graphs_come_from_the_seed():
    a, b = (sonde.generate_scaling_graphs([100], seed=42)[0] for _ in range(2))
    assert torch.equal(a.x, b.x) and torch.equal(a.edge_index, b.edge_index)
    assert a.num_nodes == 100 and a.num_edges == 500 and a.x.shape[1] == 16
    assert int(a.edge_index.max()) < 100


def test_the_estimator_reads_sizes_off_the_model():
    model = nn.Linear(2, 2)
    with pytest.raises(ValueError, match="hidden_dim"):
        sonde.FLOPsEstimator(model).estimate(10)
    model.hidden_dim, model.num_layers, model.num_heads = 32, 2, 4
    estimate = sonde.FLOPsEstimator(model).estimate(num_nodes=50, num_edges=250)
    assert estimate.total == sonde.estimate_model_flops(50, 250, 32, 2, 4).total
    assert estimate.parameters == 6
