"""Profiles of a loader, of preprocessing, of training: each runs the real thing.

torch is used when the caller's objects are torch's, and never imported otherwise.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Callable, Iterable, Iterator, Optional

from . import _sonde
from ._bench import synchronize
from ._operation import resident_mb
from ._session import current_session

MIB = 2.0**20


class _Metrics:
    """Fields also by name, as `metrics["throughput"]`."""

    def __getitem__(self, key: str) -> Any:
        try:
            return getattr(self, key)
        except AttributeError:
            raise KeyError(key) from None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)  # type: ignore[call-overload,no-any-return,unused-ignore]


# ---- What a batch is -------------------------------------------------------------------


def leaves(batch: Any) -> Iterator[Any]:
    """The arrays and other leaves of a batch of tuples, lists and mappings."""
    if isinstance(batch, Mapping):
        for value in batch.values():
            yield from leaves(value)
    elif isinstance(batch, (list, tuple)):
        for value in batch:
            yield from leaves(value)
    else:
        yield batch


def batch_size(batch: Any) -> Optional[int]:
    """Samples in a batch: the first dimension of an array, the length its fields agree
    on, or how many samples a list holds; None when that is unclear."""
    shape = getattr(batch, "shape", None)
    if shape is not None:
        return int(shape[0]) if len(shape) else 1
    if isinstance(batch, Mapping):
        return _agreed(map(_field_size, batch.values()))
    if isinstance(batch, (list, tuple)):
        return _sequence_size(batch)
    with contextlib.suppress(TypeError):
        return len(batch)
    return None


def _agreed(sizes: Iterable[Optional[int]]) -> Optional[int]:
    known = {size for size in sizes if size is not None}
    return known.pop() if len(known) == 1 else None


def _is_array(value: Any) -> bool:
    return bool(getattr(value, "shape", None))


def _field_size(value: Any) -> Optional[int]:
    """Of one field of a batch; a number or a text says nothing."""
    if _is_array(value) or isinstance(value, (list, tuple, Mapping)):
        return batch_size(value)
    return None


def _sequence_size(batch: Sequence[Any]) -> Optional[int]:
    """Samples in a list or tuple, whose items are the samples or their fields."""
    if not any(_is_array(v) or isinstance(v, (list, tuple, Mapping)) for v in batch):
        return len(batch)
    if isinstance(batch, list):
        kinds = {Mapping if isinstance(v, Mapping) else type(v) for v in batch}
        if len(kinds) == 1 and len(batch) > 1 and isinstance(batch[0], (tuple, Mapping)):
            return len(batch)  # no collate function makes such fields
        if kinds == {list} and not any(map(_is_array, leaves(batch))):
            lengths = set(map(len, batch))  # of samples, or of fields
            return len(batch) if len(lengths) > 1 or len(batch) in lengths else None
    sizes = [_field_size(v) for v in batch]
    if all(map(_is_array, batch)) and len(set(sizes)) > 1:
        return len(batch)  # samples of different lengths
    return _agreed(sizes)


def batch_mb(batch: Any) -> Optional[float]:
    """Bytes of the arrays of a batch in MiB; None when it has none."""
    known = []
    for leaf in leaves(batch):
        size = getattr(leaf, "nbytes", None)
        if size is None and hasattr(leaf, "element_size"):
            size = leaf.element_size() * leaf.nelement()
        if size is not None:
            known.append(int(size))
    return sum(known) / MIB if known else None


def _mean(values: Iterable[Optional[float]]) -> Optional[float]:
    known = [v for v in values if v is not None]
    return statistics.fmean(known) if known else None


def _total(sizes: Sequence[Optional[int]]) -> Optional[int]:
    """None when one is not known, or there is none."""
    known = [size for size in sizes if size is not None]
    return sum(known) if known and len(known) == len(sizes) else None


# ---- Loader ----------------------------------------------------------------------------


@dataclass
class LoaderProfile(_Metrics):
    """Of profile_loader(). Times in seconds."""

    batches: int
    samples: Optional[int]
    total_time: float
    first_batch_time: Optional[float]  # starts the workers: not in the average
    avg_batch_time: Optional[float]
    max_batch_time: Optional[float]
    throughput: Optional[float]  # samples/s, of the batches in the average
    avg_memory_per_batch: Optional[float]  # MiB of arrays in a batch
    memory_growth_mb: Optional[float]  # resident memory, first to last batch
    batch_times: list[float] = field(default_factory=list, repr=False)


def profile_loader(loader: Iterable[Any], num_batches: int = 20) -> LoaderProfile:
    """Take `num_batches` batches and time each: average batch time, samples per second,
    memory per batch.

        metrics = sonde.profile_loader(DataLoader(dataset, batch_size=32), num_batches=20)
        print(metrics.avg_batch_time, metrics["throughput"])

    The first batch, in which workers start, is reported apart (unless it is the only one).
    """
    if num_batches < 1:
        raise ValueError("profile_loader() needs at least one batch")
    zone = _sonde.zone("profile_loader", "data_loading")
    times: list[float] = []
    sizes: list[Optional[int]] = []
    weights: list[Optional[float]] = []
    before = None
    begin = time.perf_counter()
    iterator = iter(loader)
    while len(times) < num_batches:
        start = time.perf_counter() if times else begin
        try:
            with zone:
                batch = next(iterator)
        except StopIteration:
            break
        times.append(time.perf_counter() - start)
        sizes.append(batch_size(batch))
        weights.append(batch_mb(batch))
        before = resident_mb() if before is None else before
    after = resident_mb()
    del iterator  # ends the workers
    counted = slice(1, None) if len(times) > 1 else slice(None)
    taken, spent = _total(sizes[counted]), sum(times[counted])
    return LoaderProfile(
        batches=len(times),
        samples=_total(sizes),
        total_time=sum(times),
        first_batch_time=times[0] if times else None,
        avg_batch_time=_mean(times[counted]),
        max_batch_time=max(times[counted], default=None),
        throughput=taken / spent if taken and spent > 0 else None,
        avg_memory_per_batch=_mean(weights),
        memory_growth_mb=None if before is None or after is None else after - before,
        batch_times=times,
    )


# ---- Preprocessing ---------------------------------------------------------------------


@dataclass
class PreprocessingProfile(_Metrics):
    """Of profile_preprocessing(). Times in seconds."""

    samples: int
    total_time: float
    avg_processing_time: float
    std_processing_time: float
    min_processing_time: float
    max_processing_time: float
    throughput: float  # samples/s


def profile_preprocessing(
    function: Callable[[Any], Any],
    samples: Any,
    num_samples: int = 100,
    warmup: int = 3,
) -> PreprocessingProfile:
    """Time `function` on samples: average seconds, samples per second.

        metrics = sonde.profile_preprocessing(tokenize, texts, num_samples=100)

    `samples` is a sequence of samples, gone through again and again when it is shorter
    than `num_samples`; anything else is one sample.
    """
    is_many = isinstance(samples, Sequence) and not isinstance(samples, (str, bytes))
    source = samples if is_many else [samples]
    if num_samples < 1 or len(source) == 0:
        raise ValueError("profile_preprocessing() needs at least one sample")
    zone = _sonde.zone("profile_preprocessing", "preprocessing")
    turn = itertools.cycle(source)
    for _ in range(warmup):
        function(next(turn))
    times = []
    for sample in itertools.islice(itertools.cycle(source), num_samples):
        start = time.perf_counter()
        with zone:
            function(sample)
        times.append(time.perf_counter() - start)
    total = sum(times)
    return PreprocessingProfile(
        samples=num_samples,
        total_time=total,
        avg_processing_time=statistics.fmean(times),
        std_processing_time=statistics.stdev(times) if len(times) > 1 else 0.0,
        min_processing_time=min(times),
        max_processing_time=max(times),
        throughput=num_samples / total if total > 0 else float("inf"),
    )


# ---- Training --------------------------------------------------------------------------


@dataclass
class TrainingProfile(_Metrics):
    """Of profile_training(). Average seconds per batch."""

    batches: int
    avg_total_time: float
    avg_data_time: float
    avg_transfer_time: float
    avg_forward_time: float
    avg_backward_time: float
    avg_gradient_time: Optional[float]  # clipping; None without max_norm
    avg_optimizer_time: Optional[float]  # None without optimizer
    throughput: float  # batches/s
    samples_per_s: Optional[float]
    loss: Optional[float]  # of the last batch
    flops: Optional[int] = None  # forward and backward of a batch; None: not counted
    flops_per_s: Optional[float] = None  # over forward and backward time


class _Clock:
    """Adds up the time of each phase; the GPU has ended when a phase ends."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        with _sonde.zone(f"profile_training.{name}", name):
            yield
            synchronize()
        self.spent[name] = self.spent.get(name, 0.0) + time.perf_counter() - start


def to_device(batch: Any, device: Any) -> Any:
    """The batch with its tensors on the device."""
    if isinstance(batch, Mapping):
        return {key: to_device(value, device) for key, value in batch.items()}
    if hasattr(batch, "to"):  # a PackedSequence too, which is a tuple
        return batch.to(device, non_blocking=True)
    if isinstance(batch, (list, tuple)):
        moved = [to_device(value, device) for value in batch]
        return type(batch)(*moved) if hasattr(batch, "_fields") else type(batch)(moved)
    return batch


def call_model(model: Any, batch: Any) -> tuple[Any, Any]:
    """The model's output and the target: a mapping is keywords, a pair is (x, target)."""
    if isinstance(batch, Mapping):
        return model(**batch), batch.get("labels")
    if isinstance(batch, (list, tuple)):
        if len(batch) == 1:
            return model(batch[0]), None
        return model(*batch[:-1]), batch[-1]
    return model(batch), None


def loss_of(output: Any, target: Any, loss_fn: Optional[Callable[..., Any]]) -> Any:
    """loss_fn's; without one the model's own `loss`, or the mean of its output."""
    if loss_fn is not None:
        return loss_fn(output, target) if target is not None else loss_fn(output)
    own = getattr(output, "loss", None)
    if own is not None:
        return own
    first = next(leaves(output))
    return first.float().mean()


def device_of(model: Any) -> Any:
    parameter = next(iter(model.parameters()), None)
    return "cpu" if parameter is None else parameter.device


def profile_training(
    model: Any,
    loader: Iterable[Any],
    num_batches: int = 10,
    optimizer: Optional[Any] = None,
    loss_fn: Optional[Callable[..., Any]] = None,
    *,
    max_norm: Optional[float] = None,
    amp: Optional[bool] = None,
    flops: Optional[bool] = None,
    restore: bool = True,
) -> TrainingProfile:
    """Train for `num_batches` and time data, transfer, forward, backward, gradient
    clipping (with `max_norm`) and optimizer.

        metrics = sonde.profile_training(model, loader, 10, optimizer=opt, loss_fn=loss)
        print(metrics.avg_forward_time, metrics["throughput"])

    Parameters, gradients and optimizer state are put back afterwards (`restore=False`
    leaves them trained, and saves the copy). On CUDA each phase waits for the GPU, which
    makes phases exact and the whole a little slower than free training. `amp=True` runs
    forward and loss under autocast; the session's `mixed_precision` when not given. With
    `flops=True`, or the session's `estimate_flops`, the operations of one more batch are
    counted afterwards, outside the times. A model wrapped for several GPUs works as it is.
    """
    import torch

    saved = _save(model, optimizer) if restore else None
    was_training, device = model.training, device_of(model)
    kind = getattr(device, "type", "cpu")
    clock, done, samples, loss = _Clock(), 0, 0, None
    session = current_session()
    if amp is None:
        amp = session is not None and session.config.mixed_precision
    if flops is None:
        flops = session is not None and session.config.estimate_flops
    counted: Optional[int] = None
    model.train()
    start = time.perf_counter()
    try:
        iterator = iter(loader)
        while done < num_batches:
            try:
                with clock.phase("data_loading"):
                    batch = next(iterator)
            except StopIteration:
                break
            _sonde.step(batch_size(batch) or 0)
            with clock.phase("transfer"):
                batch = to_device(batch, device)
            autocast = torch.autocast(kind) if amp else contextlib.nullcontext()
            with clock.phase("forward"), autocast:
                output, target = call_model(model, batch)
                loss = loss_of(output, target, loss_fn)
            with clock.phase("backward"):
                loss.backward()
            if max_norm is not None:
                with clock.phase("gradient"):
                    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            if optimizer is not None:
                with clock.phase("optimizer"):
                    optimizer.step()
                    optimizer.zero_grad()
            else:
                model.zero_grad()
            samples += batch_size(batch) or 0
            done += 1
        elapsed = time.perf_counter() - start
        if flops and done:
            counted = _count_flops(model, batch, loss_fn)
    finally:
        model.train(was_training)
        if saved is not None:
            _restore(model, optimizer, saved)
    if done == 0:
        raise ValueError("profile_training(): the loader gave no batch")
    average = {name: spent / done for name, spent in clock.spent.items()}
    return TrainingProfile(
        batches=done,
        avg_total_time=elapsed / done,
        avg_data_time=average["data_loading"],
        avg_transfer_time=average["transfer"],
        avg_forward_time=average["forward"],
        avg_backward_time=average["backward"],
        avg_gradient_time=average.get("gradient"),
        avg_optimizer_time=average.get("optimizer"),
        throughput=done / elapsed,
        samples_per_s=samples / elapsed if samples else None,
        loss=None if loss is None else float(loss.detach()),
        flops=counted,
        flops_per_s=None if counted is None else counted / (
            average["forward"] + average["backward"]
        ),
    )


def _count_flops(model: Any, batch: Any, loss_fn: Optional[Callable[..., Any]]) -> Any:
    """Of forward and backward; None where they cannot be counted."""
    from ._flops import count_flops

    try:
        with count_flops() as counter:
            loss_of(*call_model(model, batch), loss_fn).backward()
        model.zero_grad()
        return counter.result().total
    except Exception:  # a torch without the means
        return None


def _save(model: Any, optimizer: Optional[Any]) -> tuple[Any, Any, list[Any]]:
    gradients = [None if p.grad is None else p.grad.clone() for p in model.parameters()]
    state = copy.deepcopy(model.state_dict())
    return (
        state,
        copy.deepcopy(optimizer.state_dict()) if optimizer else None,
        gradients,
    )


def _restore(
    model: Any, optimizer: Optional[Any], saved: tuple[Any, Any, list[Any]]
) -> None:
    model.load_state_dict(saved[0])
    if optimizer is not None:
        optimizer.load_state_dict(saved[1])
    for parameter, gradient in zip(model.parameters(), saved[2]):
        parameter.grad = gradient
