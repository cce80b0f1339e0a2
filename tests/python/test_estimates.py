"""What models cost by formula, and recorded measurements to hold it against."""

import json
from pathlib import Path

import pytest

import sonde


def test_estimates_have_the_numbers_of_the_formulas():
    assert sonde.estimate_linear_flops(784, 512, batch_size=32) == 2 * 32 * 784 * 512 + 32 * 512
    attention = sonde.estimate_attention_flops(1000, 256, 8)
    assert attention == 2 * (4 * 1000 * 256**2 + 2 * 1000**2 * 256) + 8 * 6 * 1000**2 + 4 * 1000 * 256
    half = sonde.estimate_attention_flops(1000, 256, 8, sparse_ratio=0.5)
    assert attention - half == 1000**2 * 256 * 2 + 8 * 6 * 1000**2 // 2
    ffn = sonde.estimate_ffn_flops(256, 512, 500)
    assert ffn == 4 * 500 * 256 * 512 + 500 * (4 * 512 + 512 + 256)
    assert sonde.estimate_mpnn_flops(100, 500, 16, 16, "gcn") == 2 * (100 * 256 + 600 * 16) + 1600
    assert sonde.estimate_pe_flops(100, 16, "lap") == 9 * 100**3


def test_a_graph_transformer_is_estimated_by_component():
    estimate = sonde.estimate_model_flops(num_nodes=500, num_edges=2500, hidden_dim=256)
    assert estimate.total == sum(estimate.breakdown.values())
    assert estimate.breakdown["attention"] == 6 * sonde.estimate_attention_flops(500, 256, 8)
    assert estimate.parameters == 3_962_122
    assert estimate.flops_per_parameter == pytest.approx(estimate.total / 3_962_122)
    assert estimate.training_step > 2.5 * estimate.total


def test_memory_estimates():
    mb = sonde.estimate_attention_memory(1000, 8, 256)
    assert mb == pytest.approx((4 * 1000 * 256 * 4 + 2 * 8 * 1000**2 * 4) / 2**20)
    assert sonde.estimate_attention_memory(1000, 8, 256, flash=True) < mb / 10
    storage = sonde.estimate_pe_storage(1000, 32, 16, 0.1)
    assert storage["node_pe"] == pytest.approx(1000 * 32 * 4 / 2**20)
    assert storage["relative_pe_sparse"] < storage["relative_pe_dense"]
    assert sonde.padding_waste([10, 20, 30, 40])["nodes"] == pytest.approx(0.375)


@pytest.mark.parametrize(
    "call",
    [
        lambda: sonde.estimate_attention_flops(10, 16, 5),
        lambda: sonde.estimate_linear_flops(-1, 3),
        lambda: sonde.estimate_linear_flops(0, 3),
        lambda: sonde.estimate_mpnn_flops(10, 20, 4, 4, "gim"),
        lambda: sonde.estimate_model_flops(num_nodes=10, hidden_dim=256, num_heads=7),
        lambda: sonde.estimate_pe_storage(10, 4, 4, 2.0),
        lambda: sonde.padding_waste([]),
    ],
)
def test_impossible_sizes_are_errors(call):
    with pytest.raises(ValueError):
        call()


REFERENCE = json.loads(Path(__file__).with_name("h200_reference.json").read_text())


@pytest.mark.parametrize("entry", REFERENCE["memory"], ids=lambda e: str(e["config"]))
def test_gpu_memory_is_predicted_within_15_percent(entry):
    """Measured by torch's allocator on an H200 (bench/device_model.py)."""
    predicted = sonde.estimate_training_memory(**entry["config"])
    assert predicted["peak"] == pytest.approx(entry["measured_mb"], rel=0.15)


# Where torch's own counter is not ours, and why.
DIFFERENCES = {
    "bilinear": "torch has no formula for it",
    "depthwise": "torch forgets the groups in the backward pass",
    "grouped": "torch forgets the groups in the backward pass",
    "encoder layer": "on CPU torch has no formula for the fused attention",
    "lstm": "torch has no formula for fused recurrent layers",
    "sparse graph convolution": "torch counts none of the sparse product forward, a dense one backward",
}


@pytest.mark.parametrize("device", ["counters", "counters_cpu"])
def test_torch_s_own_counter_agrees_or_is_known_not_to(device):
    """torch 2.11's FlopCounterMode beside ours, on the twenty modules below."""
    rows = REFERENCE[device]
    assert len(rows) == 20
    for row in rows:
        same = all(row[f"ours_{k}"] == row[f"torch_{k}"] for k in ("forward", "both"))
        assert same or row["module"] in DIFFERENCES, row
    assert sum(r["ours_both"] == r["torch_both"] for r in rows) >= 14


def test_the_best_batch_size_is_the_one_with_the_highest_throughput():
    import time

    # A fixed cost and one per sample, but beyond 8 samples everything takes ten times as long.
    def work(batch):
        time.sleep((0.004 + 0.0005 * len(batch)) * (10 if len(batch) > 8 else 1))

    best = sonde.throughput_by_batch_size(work, lambda n: [0] * n, [1, 8, 16], num_runs=5, warmup_runs=0)
    assert best.optimal == 8
    assert best.samples_per_s[8] > best.samples_per_s[1] and set(best.stats) == {1, 8, 16}
    with pytest.raises(ValueError):
        sonde.throughput_by_batch_size(work, lambda n: [0] * n, [0])

    def too_large(batch):
        if len(batch) > 4:
            raise MemoryError

    limited = sonde.throughput_by_batch_size(too_large, lambda n: [0] * n, [4, 8], num_runs=2)
    assert limited.optimal == 4 and "memory" in limited.notes[8]
