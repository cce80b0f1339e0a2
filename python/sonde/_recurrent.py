"""FLOP rules of recurrent layers that torch runs as one operator.

Which one depends on version and device: on the CPU torch 1.13 takes LSTM, GRU and RNN
apart into products, torch 2 runs an LSTM as `mkldnn_rnn_layer`; CUDA runs `_cudnn_rnn` (all
layers and directions at once, packed sequences too) or, without cuDNN, products and one
`_thnn_fused_*_cell` per step. The formulas give what the layer taken apart is counted as.
"""

from __future__ import annotations

import math
from typing import Any, Callable

# Element-wise operations per step, sequence and hidden unit: without biases, and what two
# biases add. LSTM: the two products' sum 4, three sigmoids and a tanh 16, the cell 3, its
# tanh and the gate 5. GRU: 2 + 8, the reset 2, tanh 4, the mixture 3. RNN: sum and tanh.
UNITS = {"lstm": (28, 8), "gru": (19, 6), "rnn": (5, 2)}
GATES = {"lstm": 4, "gru": 3, "rnn": 1}
CUDNN_MODES = ("rnn", "rnn", "lstm", "gru")  # relu, tanh

Counted = tuple[int, int]
Rule = Callable[[tuple[Any, ...], dict[str, Any], Any], Counted]


def _unit(kind: str, biases: bool) -> int:
    plain, more = UNITS[kind]
    return plain + (more if biases else 0)


def _matrices(weights: Any) -> list[Any]:
    return [w for w in weights if w is not None and w.dim() == 2]


def layers(kind: str, x: Any, weights: Any, passes: int) -> Counted:
    """Every matrix is used once per step and sequence (x has them in all dimensions but the
    last, packed or not). A recurrent one is gates · hidden × hidden, an input one … × in, a
    projection … × hidden: the rows of every second matrix are the units."""
    weights = [w for w in weights if w is not None and w.numel() > 0]
    positions = int(math.prod(x.shape[:-1]))
    matrices = _matrices(weights)
    macs = positions * sum(int(w.numel()) for w in matrices)
    biases = len(weights) > len(matrices)
    units = sum(int(w.shape[0]) // GATES[kind] for w in _cells(matrices, kind))
    return passes * macs, passes * positions * units * _unit(kind, biases)


def _cells(matrices: list[Any], kind: str) -> list[Any]:
    """One input matrix per layer and direction: input, recurrent(, projection) and so on.
    A projection has fewer rows than gates."""
    rows = max((int(w.shape[0]) for w in matrices), default=0)
    return [w for w in matrices if int(w.shape[0]) == rows][::2]


def cudnn(passes: int, mode_at: int) -> Rule:
    def rule(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Counted:
        return layers(CUDNN_MODES[int(args[mode_at])], args[0], args[1], passes)

    return rule


def mkldnn(passes: int) -> Rule:
    """x, input weights, recurrent weights, two biases; always an LSTM."""

    def rule(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Counted:
        return layers("lstm", args[0], args[1:5], passes)

    return rule


def cell(kind: str, passes: int, gates_at: int = 0) -> Rule:
    """What one step does beside its products: args are the gates of input and state, the
    state, two biases or None. Backward ones are given the gates' gradients or a workspace."""

    def rule(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Counted:
        biases = passes > 1 or (len(args) > 3 and args[3] is not None)
        units = int(args[gates_at].numel()) // (GATES[kind] if passes == 1 else 1)
        return 0, passes * units * _unit(kind, biases)

    return rule


RULES: dict[str, Rule] = {
    "_cudnn_rnn": cudnn(1, mode_at=6),
    "_cudnn_rnn_backward": cudnn(2, mode_at=10),
    "miopen_rnn": cudnn(1, mode_at=5),
    "miopen_rnn_backward": cudnn(2, mode_at=10),
    "mkldnn_rnn_layer": mkldnn(1),
    "mkldnn_rnn_layer_backward": mkldnn(2),
    "_thnn_fused_lstm_cell": cell("lstm", 1),
    "_thnn_fused_gru_cell": cell("gru", 1),
    # Per element of the state, or of its gradient.
    "_thnn_fused_lstm_cell_backward_impl": cell("lstm", 2, gates_at=2),
    "_thnn_fused_gru_cell_backward": cell("gru", 2),
}
