"""Cost estimates without running anything: the formulas of <sonde/model.h>, by the names
that graph-transformer profilers use."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional

from . import _sonde

MIB = 2.0**20


@dataclass
class FLOPsEstimate:
    """FLOPs in all, by component; what matrix products alone take; parameters."""

    total: int
    breakdown: dict[str, int] = field(default_factory=dict)
    macs: int = 0
    backward: int = 0
    parameters: int = 0
    details: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def training_step(self) -> int:
        """Forward and backward; an optimizer's update is small beside them."""
        return self.total + self.backward

    @property
    def flops_per_parameter(self) -> Optional[float]:
        return self.total / self.parameters if self.parameters else None


def _flops(kind: str, **sizes: Any) -> int:
    return int(_sonde.layer_cost(kind, **sizes)["forward"]["flops"])


def estimate_linear_flops(
    in_features: int,
    out_features: int,
    batch_size: int = 1,
    seq_len: int = 1,
    bias: bool = True,
) -> int:
    """FLOPs of a linear layer over batch_size × seq_len rows."""
    return _flops(
        "linear", rows=batch_size * seq_len, out=out_features, no_bias=not bias,
        **{"in": in_features},
    )  # fmt: skip


def estimate_attention_flops(
    num_nodes: int,
    hidden_dim: int,
    num_heads: int = 8,
    sparse_ratio: float = 1.0,
    batch_size: int = 1,
) -> int:
    """FLOPs of multi-head attention within graphs of num_nodes nodes; `sparse_ratio` is
    the part of the pairs that is computed."""
    return _flops(
        "attention", rows=num_nodes * batch_size, heads=num_heads, sequences=batch_size,
        sparse_ratio=sparse_ratio, **{"in": hidden_dim},
    )  # fmt: skip


def estimate_mpnn_flops(
    num_nodes: int,
    num_edges: int,
    in_features: int,
    out_features: int,
    mpnn_type: str = "gin",
    num_heads: int = 1,
    edge_dim: int = 0,
) -> int:
    """FLOPs of one message passing layer: gin, gcn, gine, gat, gatedgcn, pna or sage."""
    return _flops(
        "message_passing", rows=num_nodes, edges=num_edges, out=out_features, heads=num_heads,
        message=mpnn_type.lower(), edge_dim=edge_dim, **{"in": in_features},
    )  # fmt: skip


def estimate_ffn_flops(
    hidden_dim: int, ffn_dim: int, num_nodes: int, activation: str = "gelu"
) -> int:
    """FLOPs of linear, activation, linear over num_nodes rows."""
    return _flops(
        "ffn",
        rows=num_nodes,
        hidden=ffn_dim,
        activation=activation,
        **{"in": hidden_dim},
    )


def estimate_pe_flops(
    num_nodes: int, pe_dim: int, pe_type: str = "lap", num_edges: Optional[int] = None
) -> int:
    """FLOPs of computing a positional encoding once: lap, lap_lanczos, rwse, rwse_sparse."""
    edges = 5 * num_nodes if num_edges is None else num_edges
    return _flops("encoding", rows=num_nodes, edges=edges, out=pe_dim, encoding=pe_type)


def estimate_model_flops(
    num_nodes: int = 500,
    num_edges: Optional[int] = None,
    hidden_dim: int = 256,
    num_layers: int = 6,
    num_heads: int = 8,
    ffn_dim: int = 0,
    batch_size: int = 1,
    features: int = 16,
    outputs: int = 10,
    mpnn_type: str = "gin",
    pe_type: str = "none",
    pe_dim: int = 0,
) -> FLOPsEstimate:
    """A graph transformer of these sizes: total, breakdown, parameters.

    estimate = sonde.estimate_model_flops(num_nodes=500, num_edges=2500)
    print(f"{estimate.total / 1e9:.2f} GFLOPs, {estimate.breakdown['attention'] / 1e9:.2f} in attention")
    """
    cost = _sonde.model_cost(
        family="graph_transformer", layers=num_layers, hidden=hidden_dim, heads=num_heads,
        ffn=ffn_dim, batch=batch_size, nodes=num_nodes, edges=num_edges or 0,
        features=features, outputs=outputs, message=mpnn_type.lower(), encoding=pe_type,
        encoding_dim=pe_dim,
    )  # fmt: skip
    total = cost["total"]
    return FLOPsEstimate(
        int(total["forward"]["flops"]),
        {
            name: int(part["forward"]["flops"])
            for name, part in cost["components"].items()
        },
        int(total["forward"]["macs"]),
        int(total["backward"]["flops"]),
        int(total["parameters"]),
        cost,
    )


def estimate_attention_memory(
    num_nodes: int, num_heads: int = 8, hidden_dim: int = 256, batch_size: int = 1,
    sparse_ratio: float = 1.0, flash: bool = False,
) -> float:  # fmt: skip
    """MiB that one attention layer holds: queries, keys, values, scores, probabilities."""
    sizes = {"in": hidden_dim, "rows": num_nodes * batch_size, "heads": num_heads}
    memory = _sonde.attention_memory(
        sequences=batch_size, sparse_ratio=sparse_ratio, flash=flash, **sizes
    )
    return memory["total"] / MIB


def estimate_pe_storage(
    num_nodes: int,
    node_pe_dim: int = 0,
    relative_pe_buckets: int = 0,
    sparse_ratio: float = 1.0,
) -> dict[str, float]:
    """MiB that precomputed positional encodings take: per node, and relative ones as a
    float per pair and bucket or as the bucket's number per pair, dense and sparse."""
    storage = _sonde.encoding_storage(
        num_nodes, node_pe_dim, relative_pe_buckets, sparse_ratio
    )
    names = {
        "node_pe": "node",
        "relative_pe_dense": "relative_dense",
        "relative_pe_sparse": "relative_sparse",
        "relative_index_dense": "index_dense",
        "relative_index_sparse": "index_sparse",
    }
    return {ours: storage[key] / MIB for ours, key in names.items()}


def estimate_training_memory(
    num_nodes: int = 500,
    num_edges: Optional[int] = None,
    hidden_dim: int = 256,
    num_layers: int = 6,
    num_heads: int = 8,
    ffn_dim: int = 0,
    batch_size: int = 1,
    mpnn_type: str = "gin",
    optimizer: str = "adamw",
    device: str = "cuda",
    **more: Any,
) -> dict[str, float]:
    """MiB that a training step of such a graph transformer takes in torch, without running
    it: parameters, optimizer state, activations, and `peak`, the most there is at once.

    Beyond what the formulas save, torch keeps every message (edges × hidden_dim) that is
    scattered, and cuBLAS its workspace (32 MiB on CUDA). The peak is reached as the
    backward pass goes through the last attention layer: everything saved is there, and
    three more of its matrices; or in the optimizer's update, where gradients and a
    temporary copy stand beside the state. Gradients are made anew each step (zero_grad's
    default).
    """
    states = {"sgd": 0, "sgd_momentum": 1, "adam": 2, "adamw": 2}
    if optimizer not in states:
        raise ValueError(f"there is no optimizer '{optimizer}': {', '.join(states)}")
    cost = estimate_model_flops(
        num_nodes, num_edges, hidden_dim, num_layers, num_heads, ffn_dim, batch_size,
        mpnn_type=mpnn_type, **more,
    )  # fmt: skip
    total = cost.details["total"]
    weights = 4.0 * cost.parameters
    edges = 5 * num_nodes if num_edges is None else num_edges
    scattered = (
        0 if mpnn_type == "none" else edges * batch_size * hidden_dim * num_layers
    )
    saved = 4.0 * (total["saved"] + scattered)
    workspace = 32 * MIB if device.startswith("cuda") else 0
    matrices = 4.0 * total["attention"] / num_layers
    flowing = 4.0 * 4 * num_nodes * batch_size * hidden_dim
    held = weights * (1 + states[optimizer])
    backward = held + saved + 3 * matrices + flowing + workspace
    update = held + 2 * weights + workspace
    parts = {
        "parameters": weights,
        "gradients": weights,
        "optimizer_state": weights * states[optimizer],
        "activations": saved,
        "attention_matrices": 4.0 * total["attention"],
        "peak": max(backward, update),
    }
    return {name: value / MIB for name, value in parts.items()}


def padding_waste(num_nodes: Any) -> dict[str, float]:
    """What part of the work on a batch padded to its largest graph is for nothing: of
    rows, and of pairs of nodes."""
    rows, pairs = _sonde.padding_waste([int(n) for n in num_nodes])
    return {"nodes": rows, "pairs": pairs}


class FLOPsEstimator:
    """Estimates for a torch model: parameters counted, sizes read off its attributes
    where they have the usual names (hidden_dim, num_layers, num_heads, ffn_dim).

    For exact numbers of any model, run it once: sonde.flops(model, inputs).
    """

    NAMES = {
        "hidden_dim": ("hidden_dim", "hidden", "d_model", "dim_h", "embed_dim"),
        "num_layers": ("num_layers", "n_layers", "depth"),
        "num_heads": ("num_heads", "n_heads", "nhead", "heads"),
        "ffn_dim": ("ffn_dim", "dim_feedforward", "intermediate_size"),
        "mpnn_type": ("mpnn_type", "mpnn", "local_gnn_type"),
    }

    def __init__(self, model: Any) -> None:
        self.model = model

    def sizes(self) -> dict[str, Any]:
        """What the model says about itself; missing is missing."""
        config = getattr(self.model, "config", None)
        found: dict[str, Any] = {}
        for size, names in self.NAMES.items():
            for name in names:
                value = getattr(self.model, name, getattr(config, name, None))
                if isinstance(value, (int, str)) and not isinstance(value, bool):
                    found[size] = value
                    break
        return found

    def estimate(
        self, num_nodes: int, num_edges: Optional[int] = None, **sizes: Any
    ) -> FLOPsEstimate:
        """As estimate_model_flops(); sizes given here win over those of the model."""
        found = {**self.sizes(), **sizes}
        missing = {"hidden_dim", "num_layers"} - found.keys()
        if missing:
            raise ValueError(
                f"the model does not say its {', '.join(sorted(missing))}: give them, or run it "
                "with sonde.flops(model, inputs)"
            )
        answer = estimate_model_flops(num_nodes, num_edges, **found)
        answer.parameters = self.count_parameters()
        return answer

    def count_parameters(self) -> int:
        from ._flops import count_parameters

        return count_parameters(self.model)
