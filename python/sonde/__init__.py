"""Sonde: where the time and memory of a training run go.

    import sonde

    with sonde.session(name="baseline") as session:
        for batch in loader:
            sonde.step(samples=len(batch))
            with sonde.zone("forward", phase="forward"):
                loss = model(batch)
    print(session.report().verdict)

Without a session, and outside `sonde run -- python train.py`, every call costs a few
nanoseconds and records nothing. Neither torch nor numpy is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._command import CommandError
from ._config import Config, ConfigError
from ._monitor import Monitor, current_stats
from ._operation import Operation, operation, profile_memory_intensive
from ._profile import profile, profile_async
from ._report import Report
from ._session import Session, SessionError, current_session, session
from ._sonde import (
    PHASES,
    Span,
    Zone,
    __version__,
    begin,
    counter,
    end,
    lost,
    mark,
    metric,
    param,
    pause,
    recording,
    resume,
    step,
    tag,
    thread_name,
    value,
    zone,
)

if TYPE_CHECKING:
    from . import integrations, optimize
    from ._bridges import from_chroma, from_mlflow, to_chroma
    from ._experiments import (
        Campaign,
        Experiment,
        campaign,
        export_experiments,
        log,
        log_many,
        search,
    )
    from ._bench import BenchResult, bench, profile_code
    from ._model import (
        ProfilingContext,
        memory_breakdown,
        profile_backward,
        profile_forward,
        profile_modes,
        profile_training_step,
    )
    from ._estimate import (
        FLOPsEstimate,
        FLOPsEstimator,
        estimate_attention_flops,
        estimate_attention_memory,
        estimate_ffn_flops,
        estimate_linear_flops,
        estimate_model_flops,
        estimate_mpnn_flops,
        estimate_pe_flops,
        estimate_pe_storage,
        estimate_training_memory,
        padding_waste,
    )
    from ._flops import Flops, FlopCounter, count_flops, count_parameters, flops
    from ._profilers import (
        BatchThroughput,
        MemoryProfiler,
        MemoryStats,
        RuntimeProfiler,
        RuntimeStats,
        ScalingExperiment,
        ScalingResult,
        SyntheticGraph,
        generate_scaling_graphs,
        get_memory_breakdown,
        get_peak_memory,
        profile_memory_usage,
        profile_pe_computation,
        reset_memory_stats,
        run_layer_scaling,
        run_node_scaling,
        run_pe_scaling,
        throughput_by_batch_size,
    )
    from ._pipeline import profile_loader, profile_preprocessing, profile_training
    from ._regression import RegressionError, check_regression
    from ._requests import AsgiMiddleware, RequestMonitor, WsgiMiddleware, requests

standard = Config.standard
lightweight = Config.lightweight

# Loaded when first used: most programs need none of them.
_LATER = {
    "Campaign": "_experiments",
    "Experiment": "_experiments",
    "campaign": "_experiments",
    "export_experiments": "_experiments",
    "log": "_experiments",
    "log_many": "_experiments",
    "search": "_experiments",
    "from_chroma": "_bridges",
    "from_mlflow": "_bridges",
    "to_chroma": "_bridges",
    "BenchResult": "_bench",
    "bench": "_bench",
    "profile_code": "_bench",
    "profile_loader": "_pipeline",
    "profile_preprocessing": "_pipeline",
    "profile_training": "_pipeline",
    "profile_forward": "_model",
    "profile_backward": "_model",
    "profile_training_step": "_model",
    "profile_modes": "_model",
    "memory_breakdown": "_model",
    "ProfilingContext": "_model",
    **dict.fromkeys(
        "RuntimeProfiler RuntimeStats MemoryProfiler MemoryStats ScalingExperiment "
        "ScalingResult SyntheticGraph generate_scaling_graphs get_memory_breakdown "
        "get_peak_memory profile_memory_usage profile_pe_computation reset_memory_stats "
        "run_layer_scaling run_node_scaling run_pe_scaling BatchThroughput "
        "throughput_by_batch_size".split(),
        "_profilers",
    ),
    **dict.fromkeys(
        "FLOPsEstimate FLOPsEstimator estimate_attention_flops estimate_attention_memory "
        "estimate_ffn_flops estimate_linear_flops estimate_model_flops estimate_mpnn_flops "
        "estimate_pe_flops estimate_pe_storage estimate_training_memory padding_waste".split(),
        "_estimate",
    ),
    **dict.fromkeys(
        "Flops FlopCounter count_flops count_parameters flops".split(), "_flops"
    ),
    "requests": "_requests",
    "RequestMonitor": "_requests",
    "AsgiMiddleware": "_requests",
    "WsgiMiddleware": "_requests",
    "check_regression": "_regression",
    "RegressionError": "_regression",
}


_PACKAGES = ("integrations", "optimize")


def __getattr__(name: str) -> Any:
    module = _LATER.get(name)
    if module is None and name not in _PACKAGES:
        raise AttributeError(f"module 'sonde' has no attribute {name!r}")
    import importlib

    if module is None:
        return importlib.import_module(f"sonde.{name}")
    found = getattr(importlib.import_module(f"sonde.{module}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER, *_PACKAGES})


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext sonde`"""
    from ._notebook import load

    load(shell)


# Written out: type checkers read it without running it.
__all__ = [
    "AsgiMiddleware",
    "BatchThroughput",
    "BenchResult",
    "Campaign",
    "CommandError",
    "Config",
    "ConfigError",
    "Experiment",
    "FLOPsEstimate",
    "FLOPsEstimator",
    "FlopCounter",
    "Flops",
    "MemoryProfiler",
    "MemoryStats",
    "Monitor",
    "Operation",
    "PHASES",
    "ProfilingContext",
    "RegressionError",
    "Report",
    "RequestMonitor",
    "RuntimeProfiler",
    "RuntimeStats",
    "ScalingExperiment",
    "ScalingResult",
    "Session",
    "SessionError",
    "Span",
    "SyntheticGraph",
    "WsgiMiddleware",
    "Zone",
    "__version__",
    "begin",
    "bench",
    "campaign",
    "check_regression",
    "count_flops",
    "count_parameters",
    "counter",
    "current_session",
    "current_stats",
    "end",
    "estimate_attention_flops",
    "estimate_attention_memory",
    "estimate_ffn_flops",
    "estimate_linear_flops",
    "estimate_model_flops",
    "estimate_mpnn_flops",
    "estimate_pe_flops",
    "estimate_pe_storage",
    "estimate_training_memory",
    "export_experiments",
    "flops",
    "from_chroma",
    "from_mlflow",
    "generate_scaling_graphs",
    "get_memory_breakdown",
    "get_peak_memory",
    "integrations",
    "lightweight",
    "log",
    "log_many",
    "lost",
    "mark",
    "memory_breakdown",
    "metric",
    "operation",
    "optimize",
    "padding_waste",
    "param",
    "pause",
    "profile",
    "profile_async",
    "profile_backward",
    "profile_code",
    "profile_forward",
    "profile_loader",
    "profile_memory_intensive",
    "profile_memory_usage",
    "profile_modes",
    "profile_pe_computation",
    "profile_preprocessing",
    "profile_training",
    "profile_training_step",
    "recording",
    "requests",
    "reset_memory_stats",
    "resume",
    "run_layer_scaling",
    "run_node_scaling",
    "run_pe_scaling",
    "search",
    "session",
    "standard",
    "step",
    "tag",
    "thread_name",
    "throughput_by_batch_size",
    "to_chroma",
    "value",
    "zone",
]
