"""The roofline of a torch model: what each of its components achieves, against what this
machine was just measured to be able to.

Components are the model's children; lists and blocks are looked into, and what stands at the
same place of every block is one component: "layers.*.attention". Time by component is that of
forward passes, with the GPU waited for around each; the training step is a row of its own.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Callable, Iterator, Optional

from ._bench import synchronize
from ._flops import Flops, OperatorCount, count_flops

# ---- What the machine can do -------------------------------------------------------------


@dataclass(frozen=True)
class Peaks:
    flops_per_s: float
    bytes_per_s: float
    method: str

    @property
    def ridge(self) -> float:
        return self.flops_per_s / self.bytes_per_s


def _best(run: Callable[[], Any], work: float, seconds: float) -> float:
    """The best of several: interference only ever slows down."""
    best, end, runs = 0.0, time.perf_counter() + seconds, 0
    while runs < 3 or time.perf_counter() < end:
        synchronize()
        start = time.perf_counter()
        run()
        synchronize()
        best = max(best, work / (time.perf_counter() - start))
        runs += 1
    return best


def measure_peaks(device: Any, dtype: Any = None, seconds: float = 1.0) -> Peaks:
    """A large matrix product in `dtype` and a triad a = b + 3c beyond the caches, on the
    device, with torch's present settings (threads, TF32)."""
    import torch

    cpu = torch.device(device).type == "cpu"
    side, long = (1024, 1 << 24) if cpu else (8192, 1 << 28)
    dtype = dtype if dtype is not None and dtype.is_floating_point else torch.float32
    with torch.no_grad():
        a = torch.full((side, side), 0.5, device=device, dtype=dtype)
        out = torch.empty_like(a)
        flops = _best(lambda: torch.mm(a, a, out=out), 2.0 * side**3, seconds / 2)
        del a, out
        b, c = (torch.ones(long, device=device) for _ in range(2))
        to = torch.ones_like(b)
        moved = _best(
            lambda: torch.add(b, c, alpha=3, out=to), 12.0 * long, seconds / 2
        )
    method = f"best of several: {side} × {side} product in {dtype}, triad over {12 * long >> 20} MiB"
    return Peaks(flops, moved, method)


# ---- Components ----------------------------------------------------------------------------


def _looked_into(module: Any, path: str) -> bool:
    """Lists of modules, and the blocks in them; a sequence only where it is the model's
    trunk."""
    import torch.nn as nn

    above, _, name = path.rpartition(".")
    return any(True for _ in module.children()) and (
        isinstance(module, (nn.ModuleList, nn.ModuleDict))
        or (isinstance(module, nn.Sequential) and not above)
        or name.isdigit()
    )


def _components(module: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    for name, child in module.named_children():
        full = f"{path}.{name}" if path else name
        if _looked_into(child, full):
            yield from _components(child, full)
        else:
            yield full, child


def _label(path: str, module: Any) -> str:
    """ "layers.3.attention" → "layers.*.attention"; a place that has no name gets that of
    the class: "net.* Linear"."""
    label = re.sub(r"(^|\.)\d+(?=\.|$)", r"\1*", path)
    return f"{label} {type(module).__name__}" if label.endswith("*") else label


class _Clock:
    """Adds up the time between a component's start and end, by label."""

    def __init__(self, model: Any) -> None:
        self.ms: dict[str, float] = defaultdict(float)
        self.labels: dict[str, str] = {}
        self._start: list[float] = []
        self._hooks = []
        for path, module in _components(model):
            self.labels[path] = _label(path, module)
            self._hooks.append(module.register_forward_pre_hook(self._enter))
            self._hooks.append(
                module.register_forward_hook(self._leave(self.labels[path]))
            )

    def _enter(self, *_: Any) -> None:
        synchronize()
        self._start.append(time.perf_counter())

    def _leave(self, label: str) -> Callable[..., None]:
        def leave(*_: Any) -> None:
            synchronize()
            self.ms[label] += (time.perf_counter() - self._start.pop()) * 1e3

        return leave

    def remove(self) -> None:
        for hook in self._hooks:
            hook.remove()


def _timed(model: Any, call: Callable[[], Any], seconds: float) -> tuple[_Clock, float]:
    """Mean ms of each component and of the whole pass; three passes at least."""
    clock = _Clock(model)
    whole, runs, end = 0.0, 0, time.perf_counter() + seconds
    try:
        while runs < 3 or (runs < 100 and time.perf_counter() < end):
            synchronize()
            start = time.perf_counter()
            call()
            synchronize()
            whole += (time.perf_counter() - start) * 1e3
            runs += 1
    finally:
        clock.remove()
    clock.ms = defaultdict(float, {k: v / runs for k, v in clock.ms.items()})
    return clock, whole / runs


# ---- The roofline -----------------------------------------------------------------------------


def _row(name: str, ms: float, whole_ms: float, count: OperatorCount, peaks: Peaks) -> dict[str, Any]:  # fmt: skip
    rate = count.flops / ms * 1e3
    intensity = count.flops / count.bytes if count.bytes else None
    roof = min(peaks.flops_per_s, (intensity or 0.0) * peaks.bytes_per_s)
    return {
        "name": name, "ms": ms, "share": ms / whole_ms, "flops": count.flops,
        "bytes": count.bytes, "flops_per_s": rate, "bytes_per_s": count.bytes / ms * 1e3,
        "flops_per_byte": intensity,
        "bound_by": None if intensity is None else "memory" if intensity < peaks.ridge else "compute",
        "of_roof": rate / roof if roof else None,
    }  # fmt: skip


def _less(a: OperatorCount, b: OperatorCount) -> OperatorCount:
    return OperatorCount(
        a.macs - b.macs, a.elementwise - b.elementwise, a.calls - b.calls, a.bytes - b.bytes
    )  # fmt: skip


def _by_label(clock: _Clock, counted: Flops) -> dict[str, OperatorCount]:
    sums: dict[str, OperatorCount] = {}
    for path, label in clock.labels.items():
        count = counted.by_layer.get(path)
        if count is not None:
            into = sums.setdefault(label, OperatorCount())
            into.add(count.macs, count.elementwise, count.bytes)
    return sums


def roofline(
    model: Any,
    forward: Callable[[], Any],
    step: Callable[[], Any],
    step_ms: Optional[float] = None,
    device: Any = "cpu",
    seconds: float = 3.0,
) -> dict[str, Any]:
    """`forward` and `step` run the model once; a third of `seconds` goes to the peaks."""
    import torch

    dtype = next((p.dtype for p in model.parameters()), None)
    with torch.no_grad():
        with count_flops(model) as counter:
            forward()
        clock, whole_ms = _timed(model, forward, seconds / 3)
    counted = counter.result()
    with count_flops() as counter:
        step()
    trained = counter.result()
    if step_ms is None:
        step_ms = 1e3 / _best(step, 1.0, seconds / 3)
    peaks = measure_peaks(device, dtype, seconds / 3)
    parts, rest, rest_ms = [], counted.by_layer[""], whole_ms
    for label, count in _by_label(clock, counted).items():
        if clock.ms[label] > 0:
            parts.append(_row(label, clock.ms[label], whole_ms, count, peaks))
        rest, rest_ms = _less(rest, count), rest_ms - clock.ms[label]
    if rest.calls > 0 and rest_ms > 0:
        name = "(between)" if clock.labels else type(model).__name__
        parts.append(_row(name, rest_ms, whole_ms, rest, peaks))
    whole = OperatorCount(trained.macs, trained.elementwise, 1, trained.bytes)
    return {
        "peak_flops_per_s": peaks.flops_per_s,
        "peak_bytes_per_s": peaks.bytes_per_s,
        "peaks": peaks.method,
        "ridge_flops_per_byte": peaks.ridge,
        "achieved_flops_per_s": trained.total / step_ms * 1e3,
        "mfu": 2 * trained.macs / step_ms * 1e3 / peaks.flops_per_s,
        "parts_of": "forward",
        "parts": parts,
        "training_step": _row("training step", step_ms, step_ms, whole, peaks),
    }


def _si(value: Optional[float]) -> str:
    from ._flops import _si as si

    return "–" if value is None else si(value)


def _ms(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def text(roof: dict[str, Any]) -> list[str]:
    """Lines for the terminal, 80 columns."""
    lines = [
        f"\n  {'ROOFLINE':<22} {'ms':>8} {'share':>7} {'FLOP/s':>8} {'bytes/s':>8} "
        f"{'FLOP/B':>6}  bound"
    ]
    for part in [*roof["parts"], roof["training_step"]]:
        name = part["name"] if len(part["name"]) <= 22 else "…" + part["name"][-21:]
        per_byte = part["flops_per_byte"]
        of = "" if part["of_roof"] is None else f" {part['of_roof']:.0%}"
        lines.append(
            f"  {name:<22} {_ms(part['ms']):>8} {part['share']:7.1%} {_si(part['flops_per_s']):>8} "
            f"{_si(part['bytes_per_s']):>8} {per_byte or 0:6.1f}  {part['bound_by'] or '–'}{of}"
        )
    lines += [
        f"  parts: of the forward pass. Peaks: {_si(roof['peak_flops_per_s'])}FLOP/s, "
        f"{_si(roof['peak_bytes_per_s'])}B/s",
        f"    ({roof['peaks']})",
        f"  MFU of the training step {roof['mfu']:.1%}",
    ]
    return lines
