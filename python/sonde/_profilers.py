"""Profilers of torch models as objects, and scaling experiments over any factory."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, Optional, Sequence

from ._bench import BenchResult, synchronize
from ._model import (
    memory_breakdown,
    profile_backward,
    profile_forward,
    profile_training_step,
)
from ._pipeline import MIB, call_model, device_of, loss_of, to_device

RuntimeStats = BenchResult


class RuntimeProfiler:
    """Forward, backward and training step of one model.

    profiler = sonde.RuntimeProfiler(model, num_runs=100)
    results = profiler.profile_all(batch, optimizer=optimizer)
    print(results["forward"], results["training_step"])

    Measurements on CUDA are synchronised.
    """

    def __init__(
        self, model: Any, device: Any = None, num_runs: int = 100, warmup_runs: int = 10
    ) -> None:
        self.model = model if device is None else model.to(device)
        self.num_runs, self.warmup_runs = num_runs, warmup_runs

    def _runs(self) -> dict[str, Any]:
        return {"num_runs": self.num_runs, "warmup_runs": self.warmup_runs}

    def profile_forward(self, batch: Any) -> BenchResult:
        return profile_forward(self.model, batch, **self._runs())

    def profile_backward(
        self, batch: Any, loss_fn: Optional[Callable[..., Any]] = None
    ) -> BenchResult:
        return profile_backward(self.model, batch, loss_fn, **self._runs())

    def profile_training_step(
        self, batch: Any, optimizer: Any, loss_fn: Optional[Callable[..., Any]] = None
    ) -> BenchResult:
        return profile_training_step(
            self.model, batch, optimizer, loss_fn, **self._runs()
        )

    def profile_all(
        self,
        batch: Any,
        optimizer: Any = None,
        loss_fn: Optional[Callable[..., Any]] = None,
    ) -> dict[str, BenchResult]:
        """The training step only where there is an optimizer."""
        results = {
            "forward": self.profile_forward(batch),
            "backward": self.profile_backward(batch, loss_fn),
        }
        if optimizer is not None:
            results["training_step"] = self.profile_training_step(
                batch, optimizer, loss_fn
            )
        return results


# ---- Memory ----------------------------------------------------------------------------


@dataclass
class MemoryStats:
    """MiB; None: not known on this device."""

    peak_mb: Optional[float]
    allocated_mb: Optional[float]
    reserved_mb: Optional[float]
    device: str


def reset_memory_stats() -> None:
    """Forget the peak; on CUDA also hand back what the allocator only keeps."""
    from ._gpu import cuda

    gpu = cuda()
    if gpu is not None:
        gpu.empty_cache()
        gpu.reset_peak_memory_stats()


def get_peak_memory(device: Any = None) -> Optional[float]:
    """MiB: the CUDA allocator's peak since reset_memory_stats(); elsewhere the process's
    highest resident memory, None where the system does not tell."""
    from ._gpu import cuda

    gpu = cuda()
    if gpu is not None and str(device or "cuda").startswith("cuda"):
        return float(gpu.max_memory_allocated(device)) / MIB
    return _high_water_mb()


def _status_mb(key: str) -> Optional[float]:
    try:
        with open("/proc/self/status") as status:
            for line in status:
                if line.startswith(key):
                    return int(line.split()[1]) / 1024
    except OSError:
        pass
    return None


def _high_water_mb() -> Optional[float]:
    return _status_mb("VmHWM:")


def _reset_high_water() -> bool:
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
        return True
    except OSError:
        return False


def profile_memory_usage(
    function: Callable[..., Any], *args: Any, device: Any = None, **kwargs: Any
) -> MemoryStats:
    """Peak memory while `function(*args, **kwargs)` runs: the allocator's on CUDA, resident
    memory above what there was before elsewhere."""
    from ._gpu import cuda

    gpu = cuda()
    if gpu is not None and (device is None or str(device).startswith("cuda")):
        reset_memory_stats()
        function(*args, **kwargs)
        synchronize()
        return MemoryStats(
            float(gpu.max_memory_allocated()) / MIB,
            float(gpu.memory_allocated()) / MIB,
            float(gpu.memory_reserved()) / MIB,
            str(device or "cuda"),
        )
    exact = _reset_high_water()
    before = _status_mb("VmRSS:")
    function(*args, **kwargs)
    peak, after = _high_water_mb(), _status_mb("VmRSS:")
    known = exact and before is not None and peak is not None and after is not None
    return MemoryStats(
        peak - before if known else None,  # type: ignore[operator]
        after - before if known else None,  # type: ignore[operator]
        None,
        str(device or "cpu"),
    )


class MemoryProfiler:
    """Peak memory of forward pass and training step, and what it is made of."""

    def __init__(self, model: Any, device: Any = None) -> None:
        self.model = model if device is None else model.to(device)

    def profile_forward(self, batch: Any) -> MemoryStats:
        import torch

        device = device_of(self.model)
        batch = to_device(batch, device)

        def forward() -> None:
            with torch.no_grad():
                call_model(self.model, batch)

        return profile_memory_usage(forward, device=device)

    def profile_training_step(
        self, batch: Any, optimizer: Any, loss_fn: Optional[Callable[..., Any]] = None
    ) -> MemoryStats:
        """Runs one step; the model is one step further afterwards."""
        device = device_of(self.model)
        batch = to_device(batch, device)

        def step() -> None:
            optimizer.zero_grad()
            loss_of(*call_model(self.model, batch), loss_fn).backward()
            optimizer.step()

        return profile_memory_usage(step, device=device)

    def breakdown(
        self, batch: Any, optimizer: Any = None
    ) -> dict[str, Optional[float]]:
        return memory_breakdown(self.model, batch, optimizer)


get_memory_breakdown = memory_breakdown


# ---- Scaling ---------------------------------------------------------------------------


@dataclass
class SyntheticGraph:
    """A random graph: features of nodes, directed edges there and back."""

    x: Any  # num_nodes × feature_dim
    edge_index: Any  # 2 × num_edges
    y: Any  # one label
    batch: Any  # zeros: all nodes belong to the one graph
    num_graphs: int = 1

    @property
    def num_nodes(self) -> int:
        return int(self.x.shape[0])

    @property
    def num_edges(self) -> int:
        return int(self.edge_index.shape[1])

    def to(self, device: Any) -> "SyntheticGraph":
        return SyntheticGraph(
            self.x.to(device), self.edge_index.to(device), self.y.to(device),
            self.batch.to(device), self.num_graphs,
        )  # fmt: skip


def generate_scaling_graphs(
    num_nodes_list: Iterable[int] = (100, 500, 1000, 2000, 5000),
    avg_degree: int = 5,
    feature_dim: int = 16,
    seed: int = 42,
) -> list[SyntheticGraph]:
    """Random graphs of these sizes; the same seed gives the same graphs."""
    import torch

    graphs = []
    for nodes in num_nodes_list:
        if nodes < 2:
            raise ValueError(f"a graph needs two nodes at least, got {nodes}")
        generator = torch.Generator().manual_seed(seed + nodes)
        pairs = max(1, nodes * avg_degree // 2)
        a = torch.randint(nodes, (pairs,), generator=generator)
        b = (a + 1 + torch.randint(nodes - 1, (pairs,), generator=generator)) % nodes
        graphs.append(
            SyntheticGraph(
                torch.randn(nodes, feature_dim, generator=generator),
                torch.stack([torch.cat([a, b]), torch.cat([b, a])]),
                torch.randint(2, (1,), generator=generator).float(),
                torch.zeros(nodes, dtype=torch.long),
            )
        )
    return graphs


def graph_arguments(model: Any, graph: SyntheticGraph) -> tuple[Any, ...]:
    """As most graph models are called, by the names of what forward() wants: (data),
    (x, edge_index), (x, edge_index, batch) or (x)."""
    import inspect

    wanted = [
        p.name
        for p in inspect.signature(model.forward).parameters.values()
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        and p.default is p.empty
    ]
    if wanted and wanted[0] in ("data", "batch", "graph"):
        return (graph,)
    parts = {
        "edge_index": graph.edge_index,
        "batch": graph.batch,
        "edges": graph.edge_index,
    }
    return (graph.x, *(parts[name] for name in wanted[1:] if name in parts))


def _default_call(model: Any, graph: SyntheticGraph) -> Any:
    return model(*graph_arguments(model, graph))


def local_exponents(
    sizes: Sequence[float], stats: Sequence[Optional[BenchResult]]
) -> list[Optional[tuple[float, float, float]]]:
    """Between neighbouring sizes: exponent, low, high (95 %, from the spread of runs)."""
    answers: list[Optional[tuple[float, float, float]]] = []
    for (n0, s0), (n1, s1) in zip(zip(sizes, stats), list(zip(sizes, stats))[1:]):
        if s0 is None or s1 is None or n0 == n1:
            answers.append(None)
            continue
        along = math.log(n1 / n0)
        slope = math.log(s1.mean_s / s0.mean_s) / along
        spread = math.sqrt(sum((s.std_s / s.mean_s) ** 2 / s.runs for s in (s0, s1)))
        half = 1.96 * spread / abs(along)
        answers.append((slope, slope - half, slope + half))
    return answers


@dataclass
class ScalingResult:
    """Runtime and memory at each place of one axis; None where it was skipped."""

    parameter_name: str
    parameter_values: list[Any]
    runtime_stats: list[Optional[BenchResult]] = field(default_factory=list)
    memory_stats: list[Optional[MemoryStats]] = field(default_factory=list)
    flops: list[Optional[int]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def exponents(self) -> list[Optional[tuple[float, float, float]]]:
        if not all(isinstance(v, (int, float)) for v in self.parameter_values):
            return []
        return local_exponents(self.parameter_values, self.runtime_stats)

    def to_dict(self) -> dict[str, Any]:
        def runtime(stats: Optional[BenchResult]) -> Optional[dict[str, Any]]:
            if stats is None:
                return None
            return {"mean": stats.mean, "std": stats.std, "min": stats.min, "max": stats.max,
                    "num_runs": stats.runs, "unit": "ms"}  # fmt: skip

        return {
            "axis": self.parameter_name,
            "parameter_values": self.parameter_values,
            "runtime": [runtime(s) for s in self.runtime_stats],
            "peak_mb": [None if m is None else m.peak_mb for m in self.memory_stats],
            "flops": self.flops,
            "notes": self.notes,
            "local_exponents": self.exponents,
        }


class ScalingExperiment:
    """How a model's forward pass grows with nodes, layers, positional encodings.

        experiment = sonde.ScalingExperiment(lambda num_layers=6, **_: make(num_layers))
        experiment.run_node_scaling()
        experiment.run_layer_scaling()
        experiment.print_summary()

    `model_factory` gets the sizes as keywords (num_layers, pe_type, pe_dim); `call(model,
    graph)` runs the model; without it forward()'s own names decide: model(data),
    model(x, edge_index), model(x). A size
    that runs out of memory is skipped with a note.
    """

    def __init__(
        self,
        model_factory: Callable[..., Any],
        device: Any = None,
        num_runs: int = 10,
        warmup_runs: int = 2,
        call: Callable[[Any, SyntheticGraph], Any] = _default_call,
        avg_degree: int = 5,
        feature_dim: int = 16,
        seed: int = 42,
    ) -> None:
        self.model_factory, self.device, self.call = model_factory, device, call
        self.num_runs, self.warmup_runs = num_runs, warmup_runs
        self.avg_degree, self.feature_dim, self.seed = avg_degree, feature_dim, seed
        self.results: dict[str, ScalingResult] = {}

    def _graph(self, nodes: int) -> SyntheticGraph:
        graph = generate_scaling_graphs(
            [nodes], self.avg_degree, self.feature_dim, self.seed
        )[0]
        return graph if self.device is None else graph.to(self.device)

    def _point(self, result: ScalingResult, nodes: int, **sizes: Any) -> None:
        import torch

        from ._bench import bench
        from ._flops import count_flops

        random.seed(self.seed)
        torch.manual_seed(self.seed)
        note, stats, memory, counted = "", None, None, None
        try:
            model = self.model_factory(**sizes).eval()
            model = model if self.device is None else model.to(self.device)
            graph = self._graph(nodes)

            def forward() -> None:
                with torch.no_grad():
                    self.call(model, graph)

            memory = profile_memory_usage(forward, device=self.device)
            with count_flops() as counter:
                forward()
            counted = counter.total
            stats = bench(forward, runs=self.num_runs, warmup=self.warmup_runs)
        except (MemoryError, RuntimeError) as error:
            if (
                not isinstance(error, MemoryError)
                and "memory" not in str(error).lower()
            ):
                raise
            note, stats = "skipped: memory ran out", None
        result.runtime_stats.append(stats)
        result.memory_stats.append(memory)
        result.flops.append(counted)
        result.notes.append(note)

    def run_node_scaling(
        self, num_nodes_list: Sequence[int] = (100, 500, 1000, 2000, 5000)
    ) -> ScalingResult:
        result = ScalingResult("num_nodes", list(num_nodes_list))
        for nodes in num_nodes_list:
            self._point(result, nodes)
        self.results["nodes"] = result
        return result

    def run_layer_scaling(
        self,
        num_layers_list: Sequence[int] = (2, 4, 6, 8, 12, 16),
        num_nodes: int = 500,
    ) -> ScalingResult:
        result = ScalingResult("num_layers", list(num_layers_list))
        for layers in num_layers_list:
            self._point(result, num_nodes, num_layers=layers)
        self.results["layers"] = result
        return result

    def run_pe_scaling(
        self,
        pe_configs: Sequence[dict[str, Any]] = (
            {"name": "lap", "dim": 16},
            {"name": "rwse", "dim": 16},
            {"name": "none", "dim": 0},
        ),
        num_nodes: int = 500,
    ) -> ScalingResult:
        result = ScalingResult("pe", [c["name"] for c in pe_configs])
        for config in pe_configs:
            self._point(result, num_nodes, pe_type=config["name"], pe_dim=config["dim"])
        self.results["pe"] = result
        return result

    def summary(self) -> str:
        lines = []
        for result in self.results.values():
            lines.append(result.parameter_name)
            exponents = [None, *result.exponents]
            for i, value in enumerate(result.parameter_values):
                stats = result.runtime_stats[i]
                if stats is None:
                    lines.append(f"  {value:>8}  {result.notes[i]}")
                    continue
                local = exponents[i] if i < len(exponents) else None
                growth = (
                    ""
                    if local is None
                    else f"  exponent {local[0]:.2f} ({local[1]:.2f} to {local[2]:.2f})"
                )
                flops = result.flops[i]
                work = "" if flops is None else f"  {flops / 1e9:.3g} GFLOP"
                lines.append(
                    f"  {value:>8}  {stats.mean:.2f} ± {stats.std:.2f} ms{work}{growth}"
                )
        return "\n".join(lines)

    def print_summary(self) -> None:
        print(self.summary())


def run_node_scaling(
    model_factory: Callable[..., Any],
    num_nodes_list: Sequence[int] = (100, 500, 1000, 2000, 5000),
    avg_degree: int = 5,
    device: Any = None,
    **options: Any,
) -> ScalingResult:
    """One axis in one call; options as ScalingExperiment's."""
    experiment = ScalingExperiment(
        model_factory, device, avg_degree=avg_degree, **options
    )
    return experiment.run_node_scaling(num_nodes_list)


def run_layer_scaling(
    model_factory: Callable[..., Any],
    num_layers_list: Sequence[int] = (2, 4, 6, 8, 12, 16),
    num_nodes: int = 500,
    device: Any = None,
    **options: Any,
) -> ScalingResult:
    """Time and memory of models of so many layers, at one size of graph.

        run_layer_scaling(lambda num_layers: Net(num_layers)).exponents
    """
    experiment = ScalingExperiment(model_factory, device, **options)
    return experiment.run_layer_scaling(num_layers_list, num_nodes)


def run_pe_scaling(
    model_factory: Callable[..., Any],
    pe_configs: Sequence[dict[str, Any]] = (
        {"name": "lap", "dim": 16},
        {"name": "rwse", "dim": 16},
        {"name": "none", "dim": 0},
    ),
    device: Any = None,
    **options: Any,
) -> ScalingResult:
    """What positional encodings cost, in time and memory, as graphs grow."""
    return ScalingExperiment(model_factory, device, **options).run_pe_scaling(
        pe_configs
    )


@dataclass
class BatchThroughput:
    """Samples per second by batch size, and the size with the most."""

    samples_per_s: dict[int, float]
    optimal: int
    stats: dict[int, BenchResult] = field(default_factory=dict, repr=False)
    notes: dict[int, str] = field(default_factory=dict)


def throughput_by_batch_size(
    function: Callable[[Any], Any],
    make_batch: Callable[[int], Any],
    batch_sizes: Sequence[int] = (16, 32, 64, 128),
    num_runs: int = 10,
    warmup_runs: int = 2,
) -> BatchThroughput:
    """Run `function(make_batch(size))` at each size.

        best = sonde.throughput_by_batch_size(model, lambda n: torch.randn(n, 784))
        print(best.optimal, best.samples_per_s)

    The median run counts. A size that runs out of memory is skipped with a note.
    """
    from ._bench import bench

    rates: dict[int, float] = {}
    stats: dict[int, BenchResult] = {}
    notes: dict[int, str] = {}
    for size in batch_sizes:
        if size < 1:
            raise ValueError(f"a batch needs one sample at least, got {size}")
        try:
            batch = make_batch(size)
            stats[size] = bench(function, batch, runs=num_runs, warmup=warmup_runs)
            rates[size] = size / stats[size].median_s
        except (MemoryError, RuntimeError) as error:
            if (
                not isinstance(error, MemoryError)
                and "memory" not in str(error).lower()
            ):
                raise
            notes[size] = "skipped: memory ran out"
    if not rates:
        raise ValueError("no batch size could be run")
    return BatchThroughput(rates, max(rates, key=rates.__getitem__), stats, notes)


def profile_pe_computation(
    pe_transform: Callable[[Any], Any],
    data: Any,
    num_runs: int = 10,
    warmup_runs: int = 1,
) -> BenchResult:
    """Time of computing a positional encoding: pe_transform(data)."""
    from ._bench import bench

    return bench(pe_transform, data, runs=num_runs, warmup=warmup_runs)
