"""`sonde model --model FILE.py:FACTORY`: the command's torch side.

The command replaces itself by `python3 -m sonde._modelrun` with its own arguments. The
answer has the same sections as that of the built-in models.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import inspect
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Optional

SECTIONS = ("runtime", "memory", "flops", "scaling")
SCHEMA = "sonde.model/1"


PROVENANCE = (
    ("runtime", "runtime", "measured", "clock around each pass, the GPU waited for"),
    ("memory", "memory.peak_mb", "measured", "torch's allocator, or the process's memory"),
    ("flops", "flops", "modelled", "rules per operator that torch dispatched"),
    ("roofline", "roofline.peak_flops_per_s", "measured", "the best of several matrix products"),
    ("roofline", "roofline.peak_bytes_per_s", "measured", "the best of several triads"),
    ("roofline", "roofline.parts.bytes", "modelled", "operands read and results written once"),
)  # fmt: skip


class Failure(Exception):
    """Said to the user in one line; exit status 2."""


def arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="sonde model", add_help=False)
    parser.add_argument("--model", "-m", required=True)
    parser.add_argument("--profile", "-p", action="append", default=[])
    parser.add_argument("--dataset", "-d")
    for name in ("hidden", "num-layers", "num-heads", "ffn-dim", "num-nodes", "num-edges",
                 "features", "outputs", "seq-len", "vocab", "pe-dim"):  # fmt: skip
        parser.add_argument(
            f"--{name}" + ("-dim" if name == "hidden" else ""), type=int
        )
    for name in ("mpnn", "pe", "optimizer", "device", "output"):
        parser.add_argument(f"--{name}", *(["-o"] if name == "output" else []))
    parser.add_argument("--avg-degree", type=int, default=5)
    parser.add_argument("--batch-size", "-b", type=int)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--num-runs", "-n", type=int, default=100)
    parser.add_argument("--warmup-runs", "-w", type=int, default=10)
    parser.add_argument("--threads", "-t", type=int)
    parser.add_argument("--budget", default="20s")
    parser.add_argument("--dropout", type=float)
    parser.add_argument("--cpu-time", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quiet", "-q", action="store_true")
    given = parser.parse_args(words)
    given.profile = given.profile or ["runtime", "memory", "flops"]
    return given


# ---- The model --------------------------------------------------------------------------


def load_factory(name: str) -> Any:
    path, _, function = name.rpartition(":")
    spec = importlib.util.spec_from_file_location("sonde_model_file", path)
    if spec is None or spec.loader is None:
        raise Failure(f"cannot load '{path}': it is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(Path(path).resolve().parent))
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        raise Failure(
            f"cannot load '{path}': {type(error).__name__}: {error}"
        ) from error
    factory = getattr(module, function, None)
    if not callable(factory):
        raise Failure(f"'{path}' has no function '{function}'")
    return factory


def accepted(factory: Any, sizes: dict[str, Any]) -> dict[str, Any]:
    """Those sizes that the factory takes."""
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        return {}
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return sizes
    names = {p.name for p in parameters}
    return {key: value for key, value in sizes.items() if key in names}


def make(
    factory: Any, given: argparse.Namespace, **more: Any
) -> tuple[Any, Optional[Any]]:
    """The model and its inputs, None when the factory gives none."""
    sizes = {
        "hidden_dim": given.hidden_dim, "num_layers": given.num_layers,
        "num_heads": given.num_heads, "ffn_dim": given.ffn_dim, "num_nodes": given.num_nodes,
        "num_edges": given.num_edges, "batch_size": given.batch_size,
        "seq_len": given.seq_len, "features": given.features, "outputs": given.outputs,
        "dropout": given.dropout, "mpnn": given.mpnn, "pe": given.pe, "pe_dim": given.pe_dim,
        "vocab": given.vocab,
    }  # fmt: skip
    wanted = {k: v for k, v in {**sizes, **more}.items() if v is not None}
    try:
        answer = factory(**accepted(factory, wanted))
    except BaseException as error:
        name = getattr(factory, "__name__", "the factory")
        raise Failure(f"{name}() raised {type(error).__name__}: {error}") from error
    if isinstance(answer, tuple) and len(answer) != 2:
        raise Failure(
            f"the factory returned {len(answer)} things: a module, or (module, inputs)"
        )
    model, inputs = answer if isinstance(answer, tuple) else (answer, None)
    if not hasattr(model, "parameters") or not callable(model):
        raise Failure(
            f"the factory returned {type(model).__name__}, not a torch module"
        )
    return model, inputs


def inputs_for(model: Any, inputs: Any, given: argparse.Namespace) -> Any:
    from ._profilers import generate_scaling_graphs, graph_arguments

    if inputs is None:
        graph = generate_scaling_graphs(
            [given.num_nodes or 500], given.avg_degree, given.features or 16, given.seed
        )[0]
        inputs = graph_arguments(model, graph)
    return inputs if type(inputs) in (tuple, list, dict) else (inputs,)


# ---- Measuring ----------------------------------------------------------------------------


def seconds(text: str) -> float:
    units = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
    for unit in ("ms", "s", "m", "h"):
        if text.endswith(unit):
            return float(text[: -len(unit)]) * units[unit]
    return float(text)


class Job:
    def __init__(
        self, given: argparse.Namespace, sizes: Optional[dict[str, int]] = None
    ) -> None:
        import torch

        self.given, self.torch = given, torch
        if given.threads:
            torch.set_num_threads(given.threads)
        torch.manual_seed(given.seed)
        self.factory = load_factory(given.model)
        model, inputs = make(self.factory, given, **(sizes or {}))
        self.graph_inputs = inputs is None
        self.device = given.device or ("cuda" if torch.cuda.is_available() else "cpu")
        try:
            self.model = model.to(self.device)
        except (RuntimeError, AssertionError) as error:
            raise Failure(
                f"cannot use the device '{self.device}': {error} (try --device cpu)"
            ) from error
        self.inputs = self._move(inputs_for(self.model, inputs, given))
        self.optimizer = self._optimizer()

    def _move(self, value: Any) -> Any:
        if hasattr(value, "to"):  # a packed sequence too, which is a named tuple
            return value.to(self.device)
        if isinstance(value, dict):
            return {k: self._move(v) for k, v in value.items()}
        if type(value) in (tuple, list):
            return type(value)(self._move(v) for v in value)
        return value

    def _optimizer(self) -> Any:
        kinds = {
            "sgd": lambda p: self.torch.optim.SGD(p, lr=1e-4),
            "sgd_momentum": lambda p: self.torch.optim.SGD(p, lr=1e-4, momentum=0.9),
            "adam": lambda p: self.torch.optim.Adam(p, lr=1e-4),
            "adamw": lambda p: self.torch.optim.AdamW(p, lr=1e-4),
        }
        parameters = [p for p in self.model.parameters() if p.requires_grad]
        return (
            kinds[self.given.optimizer or "adamw"](parameters) if parameters else None
        )

    def call(self) -> Any:
        if isinstance(self.inputs, dict):
            return self.model(**self.inputs)
        return self.model(*self.inputs)

    def loss(self) -> Any:
        """The model's own loss, or the mean of the squares of what it returns."""
        from ._flops import _plain, _tensors

        out = self.call()
        own = getattr(out, "loss", None)
        if own is None and isinstance(out, dict):
            own = out.get("loss")
        if own is not None:
            return own
        floats = [t for t in _tensors(_plain(out)) if t.is_floating_point()]
        if not floats:
            raise Failure("the model returns no tensor of numbers: nothing to train on")
        return sum((t.float() ** 2).mean() for t in floats)

    def step(self) -> None:
        self.model.zero_grad(set_to_none=True)
        self.loss().backward()
        if self.optimizer is not None:
            self.optimizer.step()


def timed(job: Job, run: Any, prepare: Any = None) -> Any:
    """As many runs as asked for, fewer when the budget ends; three at least."""
    from ._bench import BenchResult, synchronize

    clock = time.process_time if job.given.cpu_time else time.perf_counter
    times: list[float] = []
    end = time.perf_counter() + seconds(job.given.budget) / 3
    for i in range(job.given.warmup_runs + job.given.num_runs):
        prepared = prepare() if prepare else None
        synchronize()
        start = clock()
        run(prepared) if prepare else run()
        synchronize()
        if i >= job.given.warmup_runs or time.perf_counter() > end:
            times.append(clock() - start)
        if len(times) >= 3 and time.perf_counter() > end:
            break
    return BenchResult.of(times, job.given.warmup_runs)


def runtime(job: Job) -> dict[str, Any]:
    def forward() -> None:
        with job.torch.no_grad():
            job.call()

    def stats(result: Any) -> dict[str, Any]:
        return {"mean": result.mean, "std": result.std, "min": result.min, "max": result.max,
                "p50": result.median, "p95": result.p95, "num_runs": result.runs,
                "unit": "ms"}  # fmt: skip

    return {
        "forward": stats(timed(job, forward)),
        "backward": stats(timed(job, lambda loss: loss.backward(), job.loss)),
        "training_step": stats(timed(job, job.step)),
        "threads": job.torch.get_num_threads(),
        "device": str(job.device),
    }


def memory(job: Job) -> dict[str, Any]:
    from ._model import _activations_of, _bytes, _optimizer_bytes
    from ._pipeline import MIB
    from ._profilers import profile_memory_usage

    job.step()  # the optimizer's state is there from the first step on
    activations, loss = _activations_of(job.model, job.loss)
    del loss
    used = profile_memory_usage(job.step, device=job.device)
    parameters = sum(map(_bytes, job.model.parameters()))
    state = 0 if job.optimizer is None else _optimizer_bytes(job.optimizer)
    return {
        "method": "measured",
        "peak_mb": used.peak_mb,
        "allocated_mb": used.allocated_mb,
        "reserved_mb": used.reserved_mb,
        "breakdown": {
            "parameters": parameters / MIB,
            "gradients": parameters / MIB,
            "optimizer_state": state / MIB,
            "activations": activations / MIB,
        },
    }


def operations(job: Job) -> dict[str, Any]:
    from ._flops import count_flops, flops

    inputs = job.inputs if isinstance(job.inputs, dict) else tuple(job.inputs)
    answer = flops(job.model, inputs).to_dict()
    with count_flops() as counter:
        job.step()
    answer["training_step_gflops"] = counter.total / 1e9
    return answer


def rooflines(job: Job, step_ms: float) -> dict[str, Any]:
    from ._roofline import roofline

    seconds_for_it = min(3.0, seconds(job.given.budget) / 4)
    return roofline(job.model, job.call, job.step, step_ms, job.device, seconds_for_it)


# What a factory that brings its own inputs may be asked for.
AXES = {
    "num_nodes": (100, 500, 1000), "num_layers": (2, 4, 6), "batch_size": (1, 2, 4, 8),
    "seq_len": (64, 128, 256), "hidden_dim": (64, 128, 256),
}  # fmt: skip


def own_scaling(job: Job) -> list[dict[str, Any]]:
    """The first two sizes that the factory takes, each by itself; forward passes."""
    from ._profilers import ScalingResult

    taken = [name for name in AXES if accepted(job.factory, {name: 1})][:2]
    results = []
    end = time.perf_counter() + 1.5 * seconds(job.given.budget)
    for name in taken:
        result = ScalingResult(name, list(AXES[name]))
        for size in AXES[name]:
            late = time.perf_counter() > end
            result.runtime_stats.append(None if late else _forward_at(job, name, size))
            result.notes.append("skipped: the time budget ended" if late else "")
        results.append(result.to_dict())
    return results


def _forward_at(job: Job, name: str, size: int) -> Any:
    other = Job(job.given, {name: size})
    # Six points beside the rest must fit a minute with the default of 20 s.
    few = {
        "num_runs": 5,
        "warmup_runs": 1,
        "budget": f"{seconds(job.given.budget) / 2}s",
    }
    other.given = argparse.Namespace(**{**vars(job.given), **few})
    with job.torch.no_grad():
        return timed(other, other.call)


def scaling(job: Job) -> list[dict[str, Any]]:
    """Along the sizes that the factory takes: nodes and layers."""
    from ._profilers import ScalingExperiment

    def factory(**sizes: Any) -> Any:
        return make(job.factory, job.given, **sizes)[0]

    experiment = ScalingExperiment(
        factory, job.device, num_runs=5, warmup_runs=1, avg_degree=job.given.avg_degree,
        feature_dim=job.given.features or 16, seed=job.given.seed,
    )  # fmt: skip
    if not job.graph_inputs:
        return own_scaling(job)
    results = [experiment.run_node_scaling((100, 500, 1000)).to_dict()]
    if accepted(job.factory, {"num_layers": 1}):
        results.append(experiment.run_layer_scaling((2, 4, 6)).to_dict())
    return results


# ---- The answer ------------------------------------------------------------------------------


def hardware(torch: Any) -> dict[str, Any]:
    cuda = bool(torch.cuda.is_available())
    properties = torch.cuda.get_device_properties(0) if cuda else None
    return {
        "cuda_available": cuda,
        "gpu_name": properties.name if properties else None,
        "gpu_memory_gb": properties.total_memory / 2**30 if properties else None,
        "cores": os.cpu_count(),
        "torch": torch.__version__,
    }


def profile(given: argparse.Namespace) -> dict[str, Any]:
    from ._flops import count_parameters

    try:
        import torch
    except ImportError as error:
        raise Failure(
            f"this interpreter ({sys.executable}) has no torch: {error} "
            "(SONDE_PYTHON_COMMAND names another interpreter)"
        ) from error
    job = Job(given)
    parameters = count_parameters(job.model)
    answer: dict[str, Any] = {
        "schema": SCHEMA,
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "hardware": hardware(torch),
        "model_info": {
            "name": given.model,
            "class": type(job.model).__name__,
            "total_parameters": parameters,
            "parameter_memory_mb": sum(
                p.numel() * p.element_size() for p in job.model.parameters()
            ) / 2**20,
        },
    }  # fmt: skip
    sections = {
        "runtime": runtime,
        "memory": memory,
        "flops": operations,
        "scaling": scaling,
    }
    for name in SECTIONS:
        if name in given.profile:
            try:
                answer[name] = sections[name](job)
                if name == "runtime":
                    step_ms = answer[name]["training_step"]["mean"]
                    roof = rooflines(job, step_ms)
            except Failure:
                raise
            except Exception as error:
                raise Failure(
                    f"the model failed in {name}: {type(error).__name__}: {error}"
                ) from error
    if "runtime" in answer:
        answer["roofline"] = roof
    answer["provenance"] = [
        {"metric": metric, "status": status, "method": method}
        for section, metric, status, method in PROVENANCE
        if section in answer
    ]
    return answer


def text(answer: dict[str, Any]) -> str:
    from ._flops import _si
    from ._roofline import text as roofline_text

    info = answer["model_info"]
    lines = [
        f"{info['name']} · {info['class']} · {info['total_parameters']:,} parameters "
        f"({info['parameter_memory_mb']:.1f} MiB)"
    ]
    if "runtime" in answer:
        lines.append(
            "\n  RUNTIME              mean        std        min        max   (ms)"
        )
        for name, stats in answer["runtime"].items():
            if isinstance(stats, dict):
                values = "".join(
                    f"{stats[k]:11.3f}" for k in ("mean", "std", "min", "max")
                )
                lines.append(f"  {name:<14}{values}   {stats['num_runs']} runs")
        lines += roofline_text(answer["roofline"])
    if "memory" in answer:
        peak = answer["memory"]["peak_mb"]
        parts = ", ".join(
            f"{k.replace('_', ' ')} {v:.1f}"
            for k, v in answer["memory"]["breakdown"].items()
        )
        shown = "unknown" if peak is None else f"{peak:.1f} MiB"
        lines.append(f"\n  MEMORY, measured: peak {shown}\n  {parts} (MiB)")
    if "flops" in answer:
        f = answer["flops"]
        lines.append(
            f"\n  FLOPs: forward {_si(f['total_gflops'] * 1e9)} ({_si(f['gmacs'] * 1e9)}MAC), "
            f"training step {_si(f['training_step_gflops'] * 1e9)}\n"
            f"  {f['coverage']:.1%} of the elements by operators that have a rule"
        )
        lines += [
            f"    {n:<28} {_si(v * 1e9):>8}"
            for n, v in list(f["breakdown"].items())[:8]
            if v
        ]
        lines += [
            f"    no rule for {u['name']}: {u['share']:.1%}" for u in f["unknown"]
        ]
    if answer.get("scaling") == []:
        lines.append(
            "\n  SCALING: nothing to vary, the factory takes none of\n    "
            + ", ".join(AXES)
        )
    for result in answer.get("scaling", []):
        lines.append(f"\n  SCALING by {result['axis']}")
        for value, stats, note in zip(
            result["parameter_values"], result["runtime"], result["notes"]
        ):
            shown = (
                note
                if stats is None
                else f"{stats['mean']:.3f} ± {stats['std']:.3f} ms"
            )
            lines.append(f"    {value:>8}  {shown}")
    return "\n".join(lines) + "\n"


def write(path: Optional[str], content: str) -> None:
    """Complete or not at all."""
    if not path or path == "-":
        sys.stdout.write(content)
        return
    folder = os.path.dirname(os.path.abspath(path))
    try:
        fd, temporary = tempfile.mkstemp(dir=folder, prefix=".sonde-")
        with os.fdopen(fd, "w") as file:
            file.write(content)
        os.replace(temporary, path)
    except OSError as error:
        raise Failure(f"cannot write '{path}': {error.strerror}") from error


def main(words: Optional[list[str]] = None) -> int:
    given = arguments(sys.argv[1:] if words is None else words)
    try:
        # What the model's own code prints must not end up in the JSON.
        with contextlib.redirect_stdout(sys.stderr):
            answer = profile(given)
        write(
            given.output,
            json.dumps(answer, indent=2) + "\n" if given.json else text(answer),
        )
    except Failure as failure:
        print(f"sonde: {failure}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
