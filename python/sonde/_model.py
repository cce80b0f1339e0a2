"""Runtime and memory of a torch model: forward, backward, training step, breakdown."""

from __future__ import annotations

import contextlib
import random
import sys
from dataclasses import asdict, dataclass
from typing import Any, Callable, Collection, Iterator, Optional

from ._bench import BenchResult, bench, timed_runs
from ._pipeline import (
    MIB,
    _restore,
    _save,
    batch_size,
    call_model,
    device_of,
    leaves,
    loss_of,
    to_device,
)

LossFunction = Callable[..., Any]


def profile_forward(
    model: Any, batch: Any, num_runs: int = 100, warmup_runs: int = 10
) -> BenchResult:
    """Time the forward pass, without gradients, in the mode the model is in.

    stats = sonde.profile_forward(model, batch)
    print(f"{stats.mean:.2f} ± {stats.std:.2f} ms")
    """
    import torch

    batch = to_device(batch, device_of(model))

    def forward() -> None:
        with torch.no_grad():
            call_model(model, batch)

    with _keeping_buffers(model):
        return bench(forward, runs=num_runs, warmup=warmup_runs)


@contextlib.contextmanager
def _keeping_buffers(model: Any) -> Iterator[None]:
    """What forward passes change besides: the running statistics of batch norm."""
    import torch

    saved = [
        (module, name, buffer, buffer.detach().cpu().clone())
        for module in model.modules()
        for name, buffer in module._buffers.items()
        if buffer is not None
    ]
    try:
        yield
    finally:
        with torch.no_grad():
            for module, name, buffer, values in saved:
                buffer.copy_(values)
                module._buffers[name] = buffer


def _keeping_gradients(model: Any) -> "contextlib.AbstractContextManager[None]":
    @contextlib.contextmanager
    def keep() -> Iterator[None]:
        saved = [p.grad for p in model.parameters()]
        for p in model.parameters():
            p.grad = None
        try:
            yield
        finally:
            for p, gradient in zip(model.parameters(), saved):
                p.grad = gradient

    return keep()


def profile_backward(
    model: Any,
    batch: Any,
    loss_fn: Optional[LossFunction] = None,
    num_runs: int = 100,
    warmup_runs: int = 10,
) -> BenchResult:
    """Time the backward pass; the forward pass before it is outside the clock."""
    batch = to_device(batch, device_of(model))

    def prepare() -> Any:
        model.zero_grad(set_to_none=True)
        return loss_of(*call_model(model, batch), loss_fn)

    with _keeping_gradients(model), _keeping_buffers(model):
        return timed_runs(lambda loss: loss.backward(), prepare, num_runs, warmup_runs)


def profile_training_step(
    model: Any,
    batch: Any,
    optimizer: Any,
    loss_fn: Optional[LossFunction] = None,
    num_runs: int = 100,
    warmup_runs: int = 10,
    restore: bool = True,
) -> BenchResult:
    """Time zero_grad, forward, backward and optimizer together. Parameters and optimizer
    state are put back afterwards unless `restore=False`."""
    batch = to_device(batch, device_of(model))
    saved = _save(model, optimizer) if restore else None

    def step() -> None:
        optimizer.zero_grad()
        loss_of(*call_model(model, batch), loss_fn).backward()
        optimizer.step()

    try:
        return bench(step, runs=num_runs, warmup=warmup_runs)
    finally:
        if saved is not None:
            _restore(model, optimizer, saved)


@dataclass(frozen=True)
class ModesProfile:
    """Of profile_modes(): training and inference of one model, side by side."""

    training: BenchResult  # zero_grad, forward, backward, optimizer
    inference: BenchResult  # forward in evaluation mode, without gradients
    samples: Optional[int]  # in the batch

    @property
    def ratio(self) -> float:
        """How many times as long a training step takes."""
        return self.training.mean_s / self.inference.mean_s

    @property
    def training_samples_per_s(self) -> Optional[float]:
        return self.samples / self.training.mean_s if self.samples else None

    @property
    def inference_samples_per_s(self) -> Optional[float]:
        return self.samples / self.inference.mean_s if self.samples else None

    def to_dict(self) -> dict[str, Any]:
        return {
            "training": asdict(self.training),
            "inference": asdict(self.inference),
            "samples": self.samples,
            "ratio": self.ratio,
            "training_samples_per_s": self.training_samples_per_s,
            "inference_samples_per_s": self.inference_samples_per_s,
        }


def profile_modes(
    model: Any,
    batch: Any,
    optimizer: Any,
    loss_fn: Optional[LossFunction] = None,
    num_runs: int = 100,
    warmup_runs: int = 10,
) -> ModesProfile:
    """Training steps and inference on the same batch, apart, each after its own warm-up.
    Mode, parameters and optimizer state are as before afterwards.

        modes = sonde.profile_modes(model, batch, optimizer, loss_fn)
        print(modes.ratio, modes.inference_samples_per_s)
    """
    was_training = model.training
    try:
        model.train()
        training = profile_training_step(
            model, batch, optimizer, loss_fn, num_runs, warmup_runs
        )
        model.eval()
        inference = profile_forward(model, batch, num_runs, warmup_runs)
    finally:
        model.train(was_training)
    return ModesProfile(training, inference, batch_size(batch))


# ---- Memory ----------------------------------------------------------------------------


def _bytes(tensor: Any) -> int:
    return int(tensor.element_size() * tensor.nelement())


def _storage_bytes(tensor: Any) -> int:
    """Of the whole memory behind a view: keeping a part keeps it all."""
    get = getattr(tensor, "untyped_storage", None) or tensor.storage
    return int(get().nbytes())


def _storage(tensor: Any) -> int:
    """What tells two views of one memory from two memories."""
    get = getattr(tensor, "untyped_storage", None) or tensor.storage
    return int(get().data_ptr())


def _activations(
    model: Any, batch: Any, loss_fn: Optional[LossFunction]
) -> tuple[int, Any]:
    def loss() -> Any:
        return loss_of(*call_model(model, batch), loss_fn)

    given = {_storage(leaf) for leaf in leaves(batch) if hasattr(leaf, "element_size")}
    return _activations_of(model, loss, given)


def _activations_of(
    model: Any, loss: Callable[[], Any], given: Collection[int] = ()
) -> tuple[int, Any]:
    """Bytes the forward pass keeps for the backward pass, and the loss. Of memory that
    was `given` (a batch may be a view of its data set) only the part that is used."""
    import torch

    own = {_storage(p) for p in model.parameters()} | {
        _storage(b) for b in model.buffers()
    }
    kept: dict[int, int] = {}

    def pack(tensor: Any) -> Any:
        where = _storage(tensor)
        if where not in own:
            whole = _storage_bytes(tensor)
            size = min(whole, _bytes(tensor)) if where in given else whole
            kept[where] = max(kept.get(where, 0), size)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        answer = loss()
    return sum(kept.values()), answer


def _optimizer_bytes(optimizer: Any) -> int:
    return sum(
        _bytes(value)
        for state in optimizer.state.values()
        for value in state.values()
        if hasattr(value, "element_size")
    )


def memory_breakdown(
    model: Any,
    batch: Any,
    optimizer: Optional[Any] = None,
    loss_fn: Optional[LossFunction] = None,
) -> dict[str, Optional[float]]:
    """MiB of parameters, buffers, activations, gradients and optimizer state, by running
    one forward and one backward pass.

        sonde.memory_breakdown(model, batch)["forward_activations"]

    Activations are the tensors autograd saves for the backward pass, each memory counted
    once. Without optimizer its state is None. On CUDA `peak` is the allocator's.
    Gradients and buffers of the model are left as they were.
    """
    from ._bench import synchronize
    from ._gpu import cuda

    batch = to_device(batch, device_of(model))
    gpu = cuda()
    if gpu is not None:
        gpu.reset_peak_memory_stats()
    with _keeping_gradients(model), _keeping_buffers(model):
        activations, loss = _activations(model, batch, loss_fn)
        loss.backward()
        synchronize()
        gradients = sum(
            _bytes(p.grad) for p in model.parameters() if p.grad is not None
        )
    parts: dict[str, Optional[float]] = {
        "parameters": sum(map(_bytes, model.parameters())) / MIB,
        "buffers": sum(map(_bytes, model.buffers())) / MIB,
        "forward_activations": activations / MIB,
        "gradients": gradients / MIB,
        "optimizer_state": None
        if optimizer is None
        else _optimizer_bytes(optimizer) / MIB,
    }
    parts["total"] = sum(value for value in parts.values() if value is not None)
    parts["activations"] = parts["forward_activations"]
    parts["peak"] = None if gpu is None else gpu.max_memory_allocated() / MIB
    return parts


# ---- The same numbers twice ------------------------------------------------------------


class ProfilingContext:
    """Evaluation mode, no dropout, fixed seed; everything as it was on exit.

        with sonde.ProfilingContext(model, seed=42):
            stats = sonde.profile_forward(model, batch)

    Restored: the mode of every module, the state of Python's, numpy's (when loaded) and
    torch's random generators, cuDNN's determinism switches.
    """

    def __init__(
        self,
        model: Any,
        disable_dropout: bool = True,
        eval_mode: bool = True,
        seed: Optional[int] = 42,
    ) -> None:
        self.model, self.seed = model, seed
        self.disable_dropout, self.eval_mode = disable_dropout, eval_mode

    def _save(self) -> None:
        import torch

        self._modes = [(module, module.training) for module in self.model.modules()]
        self._dropouts = [
            (module, module.__dict__["dropout"])
            for module, _ in self._modes
            if isinstance(module.__dict__.get("dropout"), float)
        ]
        self._random = random.getstate()
        numpy = sys.modules.get("numpy")
        self._numpy = numpy.random.get_state() if numpy is not None else None
        self._torch = torch.get_rng_state()
        self._cuda = (
            torch.cuda.get_rng_state_all() if torch.cuda.is_available() else None
        )
        cudnn = torch.backends.cudnn
        self._cudnn = (cudnn.deterministic, cudnn.benchmark)

    def _seed(self, seed: int) -> None:
        import torch

        random.seed(seed)
        if self._numpy is not None:
            sys.modules["numpy"].random.seed(seed % 2**32)
        torch.manual_seed(seed)
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.benchmark = False

    def __enter__(self) -> "ProfilingContext":
        self._save()
        if self.eval_mode:
            self.model.eval()
        if self.disable_dropout:
            for module in self.model.modules():
                if "Dropout" in type(module).__name__:
                    module.eval()
                elif isinstance(module.__dict__.get("dropout"), float):
                    module.dropout = 0.0  # attention, recurrent layers: done inside
        if self.seed is not None:
            self._seed(self.seed)
        return self

    def __exit__(self, *exception: Any) -> None:
        import torch

        for module, training in self._modes:
            module.training = training
        for module, probability in self._dropouts:
            module.dropout = probability
        random.setstate(self._random)
        if self._numpy is not None:
            sys.modules["numpy"].random.set_state(self._numpy)
        torch.set_rng_state(self._torch)
        if self._cuda is not None:
            torch.cuda.set_rng_state_all(self._cuda)
        torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = self._cudnn
