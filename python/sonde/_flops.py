"""FLOPs of whatever torch runs: `sonde.flops(model, inputs)`, `with sonde.count_flops()`.

Every operator that torch dispatches is seen (TorchDispatchMode, torch 1.13 and later),
so fused modules, backward passes and functions outside modules count too. Matrix
products, convolutions and sparse products are counted as multiply-adds; the rest by the
rules of the formulas (softmax 5 per element, norms 5, GELU 4, other element-wise 1).
An operator without a rule is listed with its share, never counted as nothing in silence.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Callable, Iterator, Optional

from . import _recurrent

MATRIX, ELEMENTS, FREE = "matrix", "elements", "free"

SOFTMAX, NORM, GELU, SMOOTH = 5, 5, 4, 4
NORM_BACKWARD, SOFTMAX_BACKWARD = 11, 4


# ---- What was counted ------------------------------------------------------------------


@dataclass
class OperatorCount:
    """One operator, or all of a layer: multiply-adds, element-wise operations, calls, and
    the least bytes that had to move: operands read once, results written once."""

    macs: int = 0
    elementwise: int = 0
    calls: int = 0
    bytes: int = 0

    @property
    def flops(self) -> int:
        return 2 * self.macs + self.elementwise

    def add(self, macs: int, elementwise: int, moved: int = 0) -> None:
        self.macs += macs
        self.elementwise += elementwise
        self.calls += 1
        self.bytes += moved


@dataclass
class UnknownOperator:
    """An operator without a rule: how often it ran, how many elements it made, and what
    share of all elements made that is."""

    name: str
    calls: int
    elements: int
    share: float


def _si(value: float) -> str:
    for unit in ("", "k", "M", "G", "T", "P"):
        if abs(value) < 999.5 or unit == "P":
            return f"{value:.3g} {unit}".strip()
        value /= 1000
    return str(value)


@dataclass
class Flops:
    """The answer of sonde.flops() and count_flops()."""

    total: int = 0  # 2 · macs + elementwise
    macs: int = 0
    elementwise: int = 0
    parameters: Optional[int] = None
    by_operator: dict[str, OperatorCount] = field(default_factory=dict)
    by_layer: dict[str, OperatorCount] = field(default_factory=dict)
    unknown: list[UnknownOperator] = field(default_factory=list)
    coverage: float = 1.0  # share of the elements made by operators that have a rule
    bytes: int = 0  # operands read once, results written once

    @property
    def matrix_flops(self) -> int:
        """What torch's own counter counts."""
        return 2 * self.macs

    @property
    def flops_per_parameter(self) -> Optional[float]:
        return self.total / self.parameters if self.parameters else None

    @property
    def breakdown(self) -> dict[str, int]:
        return {name: count.flops for name, count in self.by_operator.items()}

    def to_dict(self) -> dict[str, Any]:
        def counts(of: dict[str, OperatorCount]) -> list[dict[str, Any]]:
            return [
                {"name": name, "flops": c.flops, "macs": c.macs, "calls": c.calls,
                 "elementwise": c.elementwise, "bytes": c.bytes}
                for name, c in of.items()
            ]  # fmt: skip

        return {
            "total_gflops": self.total / 1e9,
            "matrix_gflops": self.matrix_flops / 1e9,
            "gmacs": self.macs / 1e9,
            "elementwise": self.elementwise,
            "bytes": self.bytes,
            "parameters": self.parameters,
            "flops_per_parameter": self.flops_per_parameter,
            "breakdown": {n: f / 1e9 for n, f in self.breakdown.items()},
            "operators": counts(self.by_operator),
            "layers": counts(self.by_layer),
            "coverage": self.coverage,
            "unknown": [vars(u) for u in self.unknown],
        }

    def __str__(self) -> str:
        lines = [
            f"{_si(self.total)}FLOP ({_si(self.macs)}MAC, element-wise {_si(self.elementwise)})"
        ]
        ordered = sorted(self.by_operator.items(), key=lambda item: -item[1].flops)
        for name, count in ordered[:12]:
            share = count.flops / self.total if self.total else 0
            lines.append(
                f"  {name:<28} {_si(count.flops):>8} {share:6.1%}  {count.calls} calls"
            )
        if self.unknown:
            lines.append(f"  without a rule: {1 - self.coverage:.1%} of the elements")
            lines += [
                f"    {u.name:<26} {u.calls} calls, {u.share:.1%}" for u in self.unknown
            ]
        return "\n".join(lines)


# ---- Shapes ----------------------------------------------------------------------------


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "numel") and hasattr(value, "shape")


def _tensors(value: Any) -> Iterator[Any]:
    if _is_tensor(value):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


def _elements(value: Any) -> int:
    return sum(int(t.numel()) for t in _tensors(value))


def _stored(tensor: Any) -> int:
    """Elements that are there: of a sparse tensor the non-zero ones."""
    layout = str(getattr(tensor, "layout", ""))
    if layout == "torch.sparse_coo":
        block = math.prod(tensor.shape[tensor.sparse_dim() :])
        return int(tensor._nnz()) * max(1, int(block))
    if layout.startswith("torch.sparse"):
        return int(tensor.values().numel())
    return int(tensor.numel())


def _is_sparse(tensor: Any) -> bool:
    return str(getattr(tensor, "layout", "torch.strided")) != "torch.strided"


def _bytes(tensor: Any) -> int:
    """Of what is stored: a dimension that was expanded is there once."""
    if _is_sparse(tensor):
        return _stored(tensor) * int(tensor.element_size())
    sizes = zip(tensor.shape, tensor.stride())
    there = math.prod(int(n) if step else min(int(n), 1) for n, step in sizes)
    return there * int(tensor.element_size())


# Read as much of a table as they give back.
LOOK_UPS = {"embedding", "index", "index_select", "gather", "take", "masked_select"}


def _is_view(func: Any) -> bool:
    """The result is a part of an argument; nothing moves."""
    returns = func._schema.returns
    return bool(returns) and all(
        r.alias_info is not None and not r.alias_info.is_write for r in returns
    )


def _moved(func: Any, name: str, args: Any, kwargs: Any, out: Any) -> int:
    if _is_view(func):
        return 0
    written = sum(map(_bytes, _tensors(out)))
    if name in LOOK_UPS:
        return 2 * written
    operands = [*_tensors(args), *_tensors(list(kwargs.values()))]
    return written + sum(map(_bytes, operands))


# ---- Rules: (arguments, result) → (multiply-adds, element-wise operations) -----------------

Counted = tuple[int, int]
Args = tuple[Any, ...]
Kwargs = dict[str, Any]
Rule = Callable[[Args, Kwargs, Any], Counted]


def _product(a: Any, b: Any) -> int:
    """Of a (… m k) and b (… k n); a sparse side counts what it stores."""
    if _is_sparse(a):
        return _stored(a) * int(b.shape[-1] if b.dim() > 1 else 1)
    if _is_sparse(b):
        return _stored(b) * int(a.shape[-2] if a.dim() > 1 else 1)
    columns = int(b.shape[-1]) if b.dim() > 1 else 1
    return int(a.numel()) * columns


def _mm(args: Args, kwargs: Kwargs, out: Any) -> Counted:
    return _product(args[0], args[1]), 0


def _addmm(args: Args, kwargs: Kwargs, out: Any) -> Counted:
    return _product(args[1], args[2]), _elements(out)


def _linear(args: Args, kwargs: Kwargs, out: Any) -> Counted:
    weight = args[1]
    bias = args[2] if len(args) > 2 else kwargs.get("bias")
    return int(args[0].numel()) * int(weight.shape[0]), _elements(
        out
    ) if bias is not None else 0


def _convolution(args: Args, kwargs: Kwargs, out: Any) -> Counted:
    x, weight, bias = args[0], args[1], args[2]
    window = int(weight.numel()) // int(weight.shape[0])
    transposed = bool(args[6]) if len(args) > 6 else False
    macs = int(x.numel() if transposed else out.numel()) * window
    return macs, int(out.numel()) if bias is not None else 0


def _convolution_backward(args: Args, kwargs: Kwargs, out: Any) -> Counted:
    grad, x, weight = args[0], args[1], args[2]
    transposed, mask = bool(args[7]), args[10]
    window = int(weight.numel()) // int(weight.shape[0])
    one = int(x.numel() if transposed else grad.numel()) * window
    return one * (bool(mask[0]) + bool(mask[1])), int(grad.numel()) if mask[2] else 0


def _attention_pairs(q: Any, k: Any, v: Any) -> tuple[int, int]:
    """Multiply-adds of one product of scores and values, and the scores: … heads n d."""
    scores = int(math.prod(q.shape[:-1])) * int(k.shape[-2])
    return scores * int(q.shape[-1]) + scores * int(v.shape[-1]), scores


def _fused_attention(args: Args, kwargs: Kwargs, out: Any) -> Counted:
    macs, scores = _attention_pairs(*args[:3])
    return macs, scores * (SOFTMAX + 1)


def _fused_attention_backward(args: Args, kwargs: Kwargs, out: Any) -> Counted:
    # Scores once more, then the gradients of values, probabilities, queries, keys.
    q, k, v = args[1:4]
    scores = int(math.prod(q.shape[:-1])) * int(k.shape[-2])
    return (
        scores * (3 * int(q.shape[-1]) + 2 * int(v.shape[-1])),
        scores * (SOFTMAX_BACKWARD + 1),
    )


def _multi_head(x: Any, width: int, heads: int) -> Counted:
    batch, n = (
        (int(x.shape[0]), int(x.shape[1])) if x.dim() > 2 else (1, int(x.shape[0]))
    )
    rows, scores = batch * n, batch * heads * n * n
    macs = 4 * rows * width * width + 2 * batch * n * n * width
    return macs, scores * (SOFTMAX + 1) + 4 * rows * width


def _native_attention(args: Args, kwargs: Kwargs, out: Any) -> Counted:
    return _multi_head(args[0], int(args[3]), int(args[4]))


def _encoder_layer(args: Args, kwargs: Kwargs, out: Any) -> Counted:
    """nn.TransformerEncoderLayer's fast path: one operator for all of it."""
    x, width, heads, wide = args[0], int(args[1]), int(args[2]), int(args[14].shape[0])
    rows = int(x.numel()) // width
    macs, elementwise = _multi_head(x, width, heads)
    activation = GELU if args[7] else 1
    return (
        macs + 2 * rows * width * wide,
        elementwise
        + rows * (wide * activation + wide + width + 2 * width * (NORM + 1)),
    )


def _each(operations: int, of: int = -1) -> Rule:
    """So many per element of the result, or of argument `of`."""

    def rule(args: Args, kwargs: Kwargs, out: Any) -> Counted:
        return 0, operations * _elements(out if of < 0 else args[of])

    return rule


def _first(operations: int) -> Rule:
    """Per element of the first result: norms give statistics beside it."""

    def rule(args: Args, kwargs: Kwargs, out: Any) -> Counted:
        first = next(_tensors(out), None)
        return 0, operations * (0 if first is None else int(first.numel()))

    return rule


def _largest(operations: int) -> Rule:
    """Per element of the largest argument: sums, scatters, foreach lists."""

    def rule(args: Args, kwargs: Kwargs, out: Any) -> Counted:
        sizes = [_elements(a) for a in args]
        return 0, operations * max([*sizes, 0])

    return rule


def _reduction(operations: int) -> Rule:
    return _each(operations, of=0)


def _scatter(args: Args, kwargs: Kwargs, out: Any) -> Counted:
    """One operation per element that is added somewhere: the source."""
    source = kwargs.get("src", kwargs.get("source"))
    if source is None:
        source = next((a for a in reversed(args) if _is_tensor(a)), out)
    return 0, _elements(source)


def _segment(args: Args, kwargs: Kwargs, out: Any) -> Counted:
    return 0, _elements(args[0])


def _sparse_product(args: Args, kwargs: Kwargs, out: Any) -> Counted:
    sides = [a for a in args if _is_tensor(a)]
    sparse = [a for a in sides if _is_sparse(a)]
    dense = [a for a in sides if not _is_sparse(a) and a.dim() == 2]
    if not sparse or not dense:
        return (_stored(sparse[0]) if sparse else 0), 0
    return _stored(sparse[0]) * int(dense[-1].shape[-1]), 0


def _torch_sparse(args: Args, kwargs: Kwargs, out: Any) -> Counted:
    """torch_sparse.spmm_*(row, rowptr, col, value, …, matrix): columns per edge."""
    matrix = [
        a for a in args if _is_tensor(a) and a.is_floating_point() and a.dim() > 1
    ]
    edges = next((int(a.numel()) for a in args[2:3] if _is_tensor(a)), 0)
    return edges * (int(matrix[-1].shape[-1]) if matrix else 1), 0


def _trilinear(args: Args, kwargs: Kwargs, out: Any) -> Counted:
    """nn.Bilinear: a sum over products of three tensors spread over each other."""
    import torch

    shapes = []
    for tensor, spread in zip(args[:3], args[3:6]):
        shape = list(tensor.shape)
        for dim in sorted(spread):
            shape.insert(dim, 1)
        shapes.append(tuple(shape))
    terms = math.prod(torch.broadcast_shapes(*shapes))
    return terms, terms


def _none(args: Args, kwargs: Kwargs, out: Any) -> Counted:
    return 0, 0


def _names(text: str, rule: Rule) -> dict[str, Rule]:
    return dict.fromkeys(text.split(), rule)


RULES: dict[str, Rule] = {
    **_names("mm bmm mv dot vdot", _mm),
    **_names("addmm baddbmm addmv addbmm _addmm_activation", _addmm),
    **_names("linear mkldnn_linear _mkl_linear", _linear),
    **_names("convolution _convolution mkldnn_convolution cudnn_convolution", _convolution),
    "convolution_backward": _convolution_backward,
    "_trilinear": _trilinear,
    **_names(
        "_scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_for_cpu "
        "_scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention "
        "_scaled_dot_product_attention _scaled_dot_product_attention_forward "
        "_scaled_dot_product_fused_attention_overrideable "
        "_flash_attention_forward _efficient_attention_forward",
        _fused_attention,
    ),
    **_names(
        "_scaled_dot_product_flash_attention_backward "
        "_scaled_dot_product_flash_attention_for_cpu_backward "
        "_scaled_dot_product_efficient_attention_backward "
        "_scaled_dot_product_cudnn_attention_backward "
        "_flash_attention_backward _efficient_attention_backward",
        _fused_attention_backward,
    ),
    "_native_multi_head_attention": _native_attention,
    "_transformer_encoder_layer_fwd": _encoder_layer,
    **_recurrent.RULES,
    # Sparse and graph operators.
    **_names(
        "_sparse_mm _sparse_addmm sparse_sampled_addmm _spmm spmm sspaddmm hspmm "
        "_sparse_sparse_matmul _sparse_mm_reduce_impl",
        _sparse_product,
    ),
    **_names("_sparse_csr_sum _sparse_sum coalesce _coalesce", _segment),
    **_names(
        "scatter_add scatter_reduce index_add index_reduce index_put _index_put_impl "
        "scatter_mul scatter_max scatter_min scatter_sum scatter_mean",
        _scatter,
    ),
    **_names("segment_reduce _segment_reduce_backward segment_sum_coo segment_mean_coo "
             "segment_max_coo segment_sum_csr segment_mean_csr segment_max_csr", _segment),
    **_names("spmm_sum spmm_mean spmm_max spmm_min", _torch_sparse),
    **_names("embedding_dense_backward index_select_backward gather_backward "
             "slice_backward select_backward _embedding_bag _embedding_bag_dense_backward",
             _reduction(1)),
    # Norms and activations.
    **_names("native_layer_norm native_batch_norm _native_batch_norm_legit "
             "_batch_norm_impl_index cudnn_batch_norm native_group_norm _batch_norm_with_update "
             "_native_batch_norm_legit_no_training _fused_rms_norm", _first(NORM)),
    **_names("native_layer_norm_backward native_batch_norm_backward batch_norm_backward "
             "native_group_norm_backward cudnn_batch_norm_backward", _first(NORM_BACKWARD)),
    **_names("_softmax _log_softmax _masked_softmax", _each(SOFTMAX)),
    **_names("_softmax_backward_data _log_softmax_backward_data", _each(SOFTMAX_BACKWARD)),
    "gelu": _each(GELU),
    "gelu_backward": _each(2 * GELU),
    **_names("sigmoid tanh silu elu celu selu mish hardswish hardsigmoid softplus "
             "log_sigmoid_forward glu erf erfc erfinv exp expm1 log log1p log2 log10 sin cos tan "
             "asin acos atan atan2 sinh cosh pow logaddexp", _first(SMOOTH)),
    **_names("sigmoid_backward tanh_backward silu_backward elu_backward mish_backward "
             "hardswish_backward hardsigmoid_backward softplus_backward log_sigmoid_backward "
             "glu_backward", _each(SMOOTH)),
    **_names("relu relu6 leaky_relu hardtanh threshold prelu rrelu_with_noise threshold_backward "
             "leaky_relu_backward hardtanh_backward _prelu_kernel", _first(1)),
    # Element by element.
    **_names("add sub rsub mul div neg abs sign reciprocal sqrt rsqrt square ceil floor "
             "round trunc clamp clamp_min clamp_max maximum minimum fmod remainder lerp "
             "where masked_fill bitwise_and bitwise_or bitwise_not bitwise_xor logical_and "
             "logical_or logical_not logical_xor eq ne lt le gt ge isnan isinf nan_to_num "
             "_add_relu floor_divide true_divide copysign hypot", _each(1)),
    **_names("addcmul addcdiv _fused_dropout native_dropout", _first(2)),
    **_names("native_dropout_backward", _each(2)),
    **_names("bernoulli normal uniform random exponential rand_like randn_like rand randn "
             "randint randperm multinomial", _each(1)),
    # Sums and the like: every element that goes in.
    **_names("sum mean prod max min amax amin argmax argmin any all logsumexp cumsum cumprod "
             "nansum topk sort argsort kthvalue median count_nonzero nonzero unique_consecutive "
             "unique_dim _unique2 bincount histc trace aminmax logcumsumexp mode searchsorted "
             "bucketize", _reduction(1)),
    **_names("var std var_mean std_mean", _reduction(4)),
    **_names("norm linalg_vector_norm _linalg_det dist _pdist_forward cdist _cdist_forward "
             "frobenius_norm _weight_norm_interface", _reduction(2)),
    **_names("avg_pool1d avg_pool2d avg_pool3d max_pool1d max_pool2d_with_indices "
             "max_pool3d_with_indices _adaptive_avg_pool2d _adaptive_avg_pool3d "
             "adaptive_max_pool2d avg_pool2d_backward avg_pool3d_backward "
             "max_pool2d_with_indices_backward _adaptive_avg_pool2d_backward "
             "adaptive_max_pool2d_backward max_pool3d_with_indices_backward mkldnn_max_pool2d",
             _largest(1)),
    **_names("upsample_nearest2d upsample_bilinear2d upsample_bicubic2d upsample_nearest1d "
             "upsample_linear1d grid_sampler_2d upsample_nearest2d_backward "
             "upsample_bilinear2d_backward", _first(SMOOTH)),
    **_names("nll_loss_forward nll_loss2d_forward nll_loss_backward nll_loss2d_backward", _reduction(1)),
    **_names("mse_loss mse_loss_backward l1_loss smooth_l1_loss smooth_l1_loss_backward "
             "huber_loss huber_loss_backward soft_margin_loss", _largest(2)),
    **_names("binary_cross_entropy binary_cross_entropy_backward "
             "binary_cross_entropy_with_logits _ctc_loss kl_div", _largest(SMOOTH)),
    # Optimizers over lists of tensors.
    **_names("_foreach_add _foreach_sub _foreach_mul _foreach_div _foreach_neg _foreach_sqrt "
             "_foreach_abs _foreach_maximum _foreach_minimum _foreach_reciprocal _foreach_lerp "
             "_foreach_clamp_max _foreach_clamp_min _foreach_sign", _largest(1)),
    **_names("_foreach_addcmul _foreach_addcdiv _foreach_norm _foreach_pow", _largest(2)),
    **_names("_fused_adam _fused_adamw", _largest(14)),
    **_names("_fused_sgd", _largest(4)),
    # Nothing is computed: views, copies, memory, look-ups.
    **_names(
        "view _unsafe_view reshape _reshape_alias transpose t permute expand slice select "
        "squeeze unsqueeze as_strided unbind split split_with_sizes unsafe_split unsafe_split_with_sizes unsafe_chunk chunk narrow movedim "
        "detach alias clone copy _to_copy lift_fresh lift_fresh_copy lift empty "
        "empty_like empty_strided new_empty new_empty_strided zeros zeros_like new_zeros ones "
        "ones_like new_ones full full_like new_full fill zero resize set cat stack arange "
        "linspace eye tril triu index index_select gather embedding take masked_select "
        "scatter index_copy index_fill masked_scatter constant_pad_nd reflection_pad2d "
        "reflection_pad1d replication_pad2d roll flip repeat repeat_interleave tile diagonal "
        "diag diag_embed unfold im2col col2im pixel_shuffle pixel_unshuffle contiguous "
        "_local_scalar_dense item is_same_size equal _nnz _indices _values indices values "
        "sparse_dim dense_dim is_coalesced _coalesced crow_indices col_indices "
        "_sparse_coo_tensor_unsafe _sparse_coo_tensor_with_dims_and_tensors _to_dense to_dense "
        "_to_sparse to_sparse _sparse_mask sparse_mask sparse_resize sparse_resize_and_clear "
        "_sparse_csr_tensor_unsafe _sparse_compressed_tensor_unsafe _convert_indices_from_coo_to_csr "
        "_convert_indices_from_csr_to_coo slice_backward_ channel_shuffle view_as_real "
        "view_as_complex _conj _neg_view real imag swapaxes broadcast_tensors dropout "
        "_foreach_zero _foreach_copy result_type sym_size sym_numel sym_stride pin_memory "
        "is_pinned record_stream _cudnn_init_dropout_state lengths_to_offsets rot90 "
        "slice_scatter select_scatter as_strided_scatter _assert_async _pack_padded_sequence "
        "_pad_packed_sequence _has_same_storage_numel _nested_tensor_from_mask "
        "_nested_tensor_from_mask_left_aligned _nested_from_padded _version native_norm_ "
        "set_data requires_grad_ retain_grad",
        _none,
    ),
}  # fmt: skip


# Operators about the program, not of it.
BOOKKEEPING = {"profiler", "debugprims"}


def _base_name(func: Any) -> tuple[str, str]:
    """("aten", "add") of aten::add_.Tensor."""
    name = str(func._schema.name)
    space, _, base = name.partition("::")
    return space, base[:-1] if base.endswith("_") and not base.endswith("__") else base


def _is_composite(func: Any) -> bool:
    """Without a rule, made of operators that may have one. Outside torch.inference_mode()
    torch takes such apart itself before we see them: conv1d, lstm, matmul, layer_norm."""
    space, name = _base_name(func)
    if space != "aten" or name in RULES:
        return False
    import torch

    has = getattr(torch._C, "_dispatch_has_kernel_for_dispatch_key", None)
    return bool(
        has
        and hasattr(func, "decompose")
        and has(func.name(), "CompositeImplicitAutograd")
    )


def _is_pointwise(func: Any) -> bool:
    """torch 2 marks operators that work element by element."""
    return any("pointwise" in str(tag) for tag in getattr(func, "tags", ()))


# ---- The counter -----------------------------------------------------------------------


def _mode_class() -> Any:
    try:
        from torch.utils._python_dispatch import TorchDispatchMode
    except ImportError as error:
        raise RuntimeError("counting FLOPs needs torch 1.13 or later") from error
    return TorchDispatchMode


class FlopCounter:
    """`with sonde.count_flops(model) as counter: …`, then `counter.result()`."""

    def __init__(self, model: Any = None) -> None:
        self.model = model
        self._operators: dict[str, OperatorCount] = defaultdict(OperatorCount)
        self._layers: dict[str, OperatorCount] = defaultdict(OperatorCount)
        self._unknown: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        self._made = 0
        self._stack: list[str] = []
        self._hooks: list[Any] = []
        self._mode: Any = None

    # Which layer is running.

    def _watch(self, name: str, module: Any) -> None:
        def enter(*_: Any) -> None:
            self._stack.append(name)

        def leave(*_: Any) -> None:
            # A layer that raised left its name behind: go back to this one.
            while self._stack and self._stack.pop() != name:
                pass

        self._hooks.append(module.register_forward_pre_hook(enter))
        self._hooks.append(module.register_forward_hook(leave))

    def _layer_names(self) -> Iterator[str]:
        """The running layer and those around it; a backward pass belongs to none."""
        if self.model is None:
            return
        yield "" if self._stack else "(outside)"
        yield from dict.fromkeys(name for name in self._stack if name)

    # One operator.

    def count(self, func: Any, args: Args, kwargs: Kwargs, out: Any) -> None:
        space, name = _base_name(func)
        if space in BOOKKEEPING:
            return
        label = name if space in ("aten", "prim", "prims") else f"{space}::{name}"
        rule = RULES.get(name)
        made = _elements(out)
        self._made += made
        macs = elementwise = 0
        if rule is not None:
            macs, elementwise = rule(args, kwargs, out)
        elif _is_pointwise(func):
            elementwise = made
        else:
            entry = self._unknown[label]
            entry[0] += 1
            entry[1] += made
        moved = _moved(func, name, args, kwargs, out)
        self._operators[label].add(macs, elementwise, moved)
        for layer in self._layer_names():
            self._layers[layer].add(macs, elementwise, moved)

    def __enter__(self) -> "FlopCounter":
        counter = self

        class Mode(_mode_class()):  # type: ignore[misc]
            def __torch_dispatch__(
                self,
                func: Any,
                types: Any,
                args: Args = (),
                kwargs: Optional[Kwargs] = None,
            ) -> Any:
                kwargs = kwargs or {}
                if _is_composite(func):
                    with self:
                        parts = func.decompose(*args, **kwargs)
                    if parts is not NotImplemented:
                        return parts
                out = func(*args, **kwargs)
                counter._safely(func, args, kwargs, out)
                return out

        if self.model is not None:
            for name, module in self.model.named_modules():
                self._watch(name, module)
        self._mode = Mode()
        self._mode.__enter__()
        return self

    def _safely(self, func: Any, args: Args, kwargs: Kwargs, out: Any) -> None:
        """A rule that does not understand its operator makes it unknown, never an error
        in the program that is counted."""
        try:
            self.count(func, args, kwargs, out)
        except Exception:
            entry = self._unknown[str(func._schema.name)]
            entry[0] += 1
            entry[1] += _elements(out)

    def __exit__(self, *exception: Any) -> None:
        self._mode.__exit__(*exception)
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        self._stack.clear()

    def result(self) -> Flops:
        total = OperatorCount()
        for count in self._operators.values():
            total.macs += count.macs
            total.elementwise += count.elementwise
            total.bytes += count.bytes
        unknown = [
            UnknownOperator(
                name, calls, elements, elements / self._made if self._made else 0.0
            )
            for name, (calls, elements) in self._unknown.items()
        ]
        unknown.sort(key=lambda u: -u.elements)
        known = {
            n: c
            for n, c in self._operators.items()
            if c.flops or n not in self._unknown
        }
        return Flops(
            total.flops,
            total.macs,
            total.elementwise,
            None if self.model is None else count_parameters(self.model),
            dict(sorted(known.items(), key=lambda item: -item[1].flops)),
            dict(self._layers),
            unknown,
            1.0 - sum(u.share for u in unknown),
            total.bytes,
        )

    # For `counter.total` while it runs and after.

    @property
    def total(self) -> int:
        return self.result().total


def count_flops(model: Any = None) -> FlopCounter:
    """Count what torch runs inside the block.

        with sonde.count_flops() as counter:
            loss = model(x).sum()
            loss.backward()
        print(counter.result())

    With `model` the answer also has its layers. Operators of the backward pass and
    others outside the model's layers are under "(outside)".
    """
    return FlopCounter(model)


def count_parameters(model: Any, trainable: bool = False) -> int:
    """Parameters of a torch model, shared ones once."""
    seen = {id(p): p for p in model.parameters() if p.requires_grad or not trainable}
    return sum(int(p.numel()) for p in seen.values())


def flops(model: Any, *inputs: Any, backward: bool = False, **kwargs: Any) -> Flops:
    """FLOPs of one call of `model(*inputs, **kwargs)`; with `backward=True` also of the
    backward pass of the sum of its results.

        print(sonde.flops(model, torch.randn(1, 3, 224, 224)))

    One tuple, list or dict as the only input is spread over the arguments. The model
    stays in the mode it is in; gradients are left as they were.
    """
    import torch

    from ._model import _keeping_gradients

    # Not a named tuple: a packed sequence is one, and one argument.
    if len(inputs) == 1 and type(inputs[0]) in (tuple, list):
        inputs = tuple(inputs[0])
    elif len(inputs) == 1 and isinstance(inputs[0], dict):
        kwargs, inputs = {**inputs[0], **kwargs}, ()
    with _keeping_gradients(model):
        with count_flops(model) as counter, torch.set_grad_enabled(backward):
            out = model(*inputs, **kwargs)
            if backward:
                floats = [t for t in _tensors(_plain(out)) if t.requires_grad]
                torch.autograd.backward(floats, [torch.ones_like(t) for t in floats])
    return counter.result()


def _plain(out: Any) -> Any:
    """Tensors of dicts and dataclass-like outputs too."""
    if isinstance(out, dict):
        return [_plain(v) for v in out.values()]
    if isinstance(out, (list, tuple)):
        return [_plain(v) for v in out]
    return out
