"""sonde.Config: every switch of profiling in one object.

True means "if the level and the machine reach it", False means off. Each field says in its
description what it switches; where that is out of reach of a session inside the program,
`pending()` names it with the reason: a field is never silently without effect.
"""

from __future__ import annotations

import dataclasses
import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional


LEVELS = ("basic", "detailed", "comprehensive")

_RUN_ONLY = "allocations are seen by the preload library: use `sonde run`"
_IO_RUN_ONLY = "file and socket calls are seen by the preload library: use `sonde run`"


def _switch(default: Any, text: str, pending: Optional[str] = None) -> Any:
    return dataclasses.field(
        default=default, metadata={"text": text, "pending": pending}
    )


class ConfigError(ValueError):
    """A field that does not exist, or a value it cannot take."""


@dataclass
class Config:
    """Settings of a session.

        config = sonde.Config(profile_level="comprehensive", track_gpu=False)
        with sonde.session(config) as session:
            train()
        print(session.report().bottlenecks)

    `Config.describe()` lists the fields; `config.pending()` those without effect in a
    session, with the reason: what only the preload library sees (track_allocations,
    track_deallocations, track_file_operations, track_network_operations) needs `sonde run`.
    The fields of data optimisation (auto_optimize, optimization_threshold, optimize_*,
    num_workers, prefetch_factor, pin_memory, persistent_workers, memory_efficient,
    max_memory_usage, chunk_size, enable_caching, cache_*, *_preprocessing,
    preprocessing_workers, compression, buffer_size, async_io, streaming) are those of
    sonde.optimize, whose calls take a Config; a session by itself changes no loader.
    """

    # ---- code profiling of pipelines (B2) ----
    enable_profiling: bool = _switch(True, "record at all")
    profile_level: str = _switch("detailed", "how much: basic, detailed, comprehensive")
    save_profiles: bool = _switch(True, "keep the run after the session")
    profile_dir: str = _switch("profiles", "folder of the saved runs")
    enable_performance_monitoring: bool = _switch(True, "sample the process over time")
    monitor_interval: float = _switch(1.0, "seconds between samples")
    track_memory: bool = _switch(True, "sample resident memory")
    track_cpu: bool = _switch(True, "sample CPU use")
    track_gpu: bool = _switch(True, "sample GPU memory (torch's allocator)")
    track_io: bool = _switch(True, "sample bytes read and written")
    profile_data_loading: bool = _switch(True, "zones of phase data_loading")
    profile_preprocessing: bool = _switch(True, "zones of phase preprocessing")
    profile_augmentation: bool = _switch(True, "zones of phase augmentation")
    profile_collate: bool = _switch(True, "zones of phase collate")
    profile_forward_pass: bool = _switch(True, "zones of phase forward")
    profile_backward_pass: bool = _switch(True, "zones of phase backward")
    profile_optimizer_step: bool = _switch(True, "zones of phase optimizer")
    profile_gradient_computation: bool = _switch(True, "zones of phase gradient")
    enable_memory_profiling: bool = _switch(True, "memory samples and snapshots")
    track_allocations: bool = _switch(True, "each allocation", _RUN_ONLY)
    track_deallocations: bool = _switch(True, "each deallocation", _RUN_ONLY)
    memory_snapshots: bool = _switch(True, "memory at the end of each operation")
    enable_gpu_profiling: bool = _switch(True, "everything about GPUs")
    track_gpu_memory: bool = _switch(True, "sample GPU memory (torch's allocator)")
    track_gpu_utilization: bool = _switch(
        True, "sample GPU utilisation, clocks, power (NVML, from outside)"
    )
    track_cuda_events: bool = _switch(
        True, "CUDA events at phase boundaries: device time of torch's phases"
    )
    enable_io_profiling: bool = _switch(True, "everything about input and output")
    track_file_operations: bool = _switch(True, "file calls", _IO_RUN_ONLY)
    track_network_operations: bool = _switch(True, "socket calls", _IO_RUN_ONLY)
    generate_reports: bool = _switch(True, "make the report at the end")
    create_visualizations: bool = _switch(True, "save report.html beside the run")
    export_to_json: bool = _switch(True, "save report.json beside the run")
    export_to_csv: bool = _switch(True, "save operations.csv beside the run")

    # ---- resource and compute tracking (C12) ----
    track_carbon: bool = _switch(False, "energy and CO2e of the session")
    detailed_memory: bool = _switch(True, "sample memory every memory_interval")
    memory_interval: float = _switch(0.1, "seconds between memory samples")
    track_cpu_temp: bool = _switch(True, "sample the CPU's temperature")
    track_network: bool = _switch(False, "sample bytes sent and received")
    enable_line_profiling: bool = _switch(
        True, "time by function and line, looked at from outside (not at level basic)"
    )
    estimate_flops: bool = _switch(True, "profile_training() counts FLOPs of a batch")
    track_system: bool = _switch(True, "sample the whole machine's CPU and memory")
    system_interval: float = _switch(1.0, "seconds between samples of the machine")

    # ---- profiling that optimises (D2) ----
    enabled: bool = _switch(True, "the same as enable_profiling: both must be True")
    profile_cpu: bool = _switch(True, "the same as track_cpu: both must be True")
    profile_memory: bool = _switch(True, "the same as track_memory: both must be True")
    profile_gpu: bool = _switch(True, "the same as track_gpu: both must be True")
    profile_depth: int = _switch(10, "hot functions: deepest nesting looked at")
    min_time_threshold: float = _switch(0.001, "hot functions: least seconds")
    min_memory_threshold: int = _switch(1024 * 1024, "hot functions: least bytes")
    auto_optimize: bool = _switch(
        True, "sonde.optimize uses what is proven to help; False: only says so"
    )
    optimization_threshold: float = _switch(
        0.1, "least share of time saved, proven, for a change"
    )
    real_time_monitoring: bool = _switch(True, "call alert callbacks while running")
    alert_threshold: float = _switch(5.0, "seconds from which an operation is an alert")
    monitoring_interval: float = _switch(
        1.0, "seconds between samples: the smaller one of this and monitor_interval"
    )
    log_precision: bool = _switch(False, "log the resolution of each number at the end")
    log_memory_usage: bool = _switch(False, "log memory at the end of each operation")
    optimize_loading: bool = _switch(True, "optimize.loader() tries other settings")
    prefetch_factor: int = _switch(2, "batches each worker prepares ahead, in trials")
    num_workers: int = _switch(4, "most loader workers to try; 0: none")
    pin_memory: bool = _switch(True, "try page-locked batches, with CUDA")
    persistent_workers: bool = _switch(True, "try workers that are kept between epochs")
    memory_efficient: bool = _switch(
        True, "shrink() works; chunks, caches and prefetching mind max_memory_usage"
    )
    max_memory_usage: float = _switch(
        0.8, "most memory, share of the cgroup's limit or the machine"
    )
    chunk_size: int = _switch(
        1000, "samples per chunk of chunks() and streams, at most"
    )
    enable_caching: bool = _switch(True, "samples and results may be kept")
    cache_dir: str = _switch("cache", "folder of samples kept on disk")
    cache_size: int = _switch(1000, "samples or results that are kept, at most")
    optimize_preprocessing: bool = _switch(
        True, "optimize.preprocessing() tries other ways"
    )
    batch_preprocessing: bool = _switch(True, "try functions on many samples at once")
    parallel_preprocessing: bool = _switch(True, "try threads and processes")
    preprocessing_workers: int = _switch(2, "threads or processes; below 2: none")
    optimize_io: bool = _switch(
        True, "optimize.reader() tries other ways; stored values are compressed"
    )
    compression: str = _switch("gzip", "of stored values and samples: gzip, zstd, none")
    buffer_size: int = _switch(8192, "bytes per read of optimize.reader()")
    async_io: bool = _switch(True, "read ahead in a thread: files, streamed data sets")
    monitor_performance: bool = _switch(
        True, "the same as enable_performance_monitoring: both must be True"
    )
    log_metrics: bool = _switch(True, "log the summary at the end of the session")
    streaming: bool = _switch(
        False, "optimize.dataset() reads chunk by chunk and keeps nothing"
    )
    mixed_precision: bool = _switch(False, "profile_training() runs under autocast")

    if not TYPE_CHECKING:  # checkers see the fields as keywords, with their types

        def __init__(self, **fields: Any) -> None:
            known = {f.name: f for f in dataclasses.fields(self)}
            for name in fields:
                if name not in known:
                    raise ConfigError(_unknown(name, list(known)))
            for name, field in known.items():
                setattr(self, name, fields.get(name, field.default))

    def __setattr__(self, name: str, value: Any) -> None:
        field = type(self).__dataclass_fields__.get(name)
        if field is None:
            raise ConfigError(_unknown(name, list(type(self).__dataclass_fields__)))
        object.__setattr__(self, name, _checked(field, value))

    # ---- presets ----

    @classmethod
    def standard(cls, **changes: Any) -> "Config":
        """Zones, timeline, memory and compute: what a session takes without a Config."""
        return cls(**changes)

    @classmethod
    def lightweight(cls, **changes: Any) -> "Config":
        """Statistics alone: no timeline, no sampling, no exports."""
        fewer: dict[str, Any] = dict.fromkeys(
            (
                "enable_performance_monitoring",
                "real_time_monitoring",
                "memory_snapshots",
                "detailed_memory",
                "track_system",
                "track_cpu_temp",
                "enable_line_profiling",
                "track_allocations",
                "track_deallocations",
                "track_cuda_events",
                "create_visualizations",
                "export_to_json",
                "export_to_csv",
            ),
            False,
        )
        return cls(**{"profile_level": "basic", **fewer, **changes})

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "Config":
        """A Config from a mapping, such as a YAML file's; checked like keywords."""
        return cls(**fields)

    # ---- looking at it ----

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    def pending(self) -> dict[str, str]:
        """Fields that ask for something no session can do, with the reason."""
        return {
            f.name: f.metadata["pending"]
            for f in dataclasses.fields(self)
            if f.metadata["pending"] and getattr(self, f.name) is not False
        }

    @classmethod
    def describe(cls) -> str:
        """All fields with default and meaning, one per line."""
        lines = []
        for f in dataclasses.fields(cls):
            why = f.metadata["pending"]
            later = f" (not in a session: {why})" if why else ""
            lines.append(f"{f.name} = {f.default!r}: {f.metadata['text']}{later}")
        return "\n".join(lines)

    # ---- what follows from several fields ----

    @property
    def records(self) -> bool:
        return self.enable_profiling and self.enabled

    def phases_off(self) -> list[str]:
        """Phases whose zones are not recorded."""
        return [phase for field, phase in _PHASES.items() if not getattr(self, field)]

    def monitors(self) -> set[str]:
        """What to sample over time."""
        if not (self.enable_performance_monitoring and self.monitor_performance):
            return set()
        wanted = {
            "memory": self.track_memory
            and self.profile_memory
            and self.enable_memory_profiling,
            "cpu": self.track_cpu and self.profile_cpu,
            "gpu": self.track_gpu
            and self.profile_gpu
            and self.enable_gpu_profiling
            and self.track_gpu_memory,
            "io": self.track_io and self.enable_io_profiling,
            "network": self.track_network and self.enable_io_profiling,
            "temperature": self.track_cpu_temp,
            "system": self.track_system,
        }
        return {name for name, on in wanted.items() if on}

    def monitors_outside(self) -> set[str]:
        """What the helper process samples; level basic has none."""
        kinds = self.monitors() if self.profile_level != "basic" else set()
        gpu = self.track_gpu and self.profile_gpu and self.enable_gpu_profiling
        if kinds and gpu and self.track_gpu_utilization:
            kinds.add("gpu_utilization")
        if self.track_carbon:  # is modelled from the CPU's use where nothing measures it
            kinds |= {"energy", "cpu"}
        return kinds

    def cuda_events(self) -> bool:
        """Whether the device's time at each phase is measured."""
        return (
            self.track_cuda_events and self.enable_gpu_profiling and self.profile_gpu
        )

    def interval(self) -> float:
        return min(self.monitor_interval, self.monitoring_interval)


_PHASES = {
    "profile_data_loading": "data_loading",
    "profile_preprocessing": "preprocessing",
    "profile_augmentation": "augmentation",
    "profile_collate": "collate",
    "profile_forward_pass": "forward",
    "profile_backward_pass": "backward",
    "profile_optimizer_step": "optimizer",
    "profile_gradient_computation": "gradient",
}

_INTERVALS = {
    "monitor_interval",
    "memory_interval",
    "system_interval",
    "monitoring_interval",
}

_LEAST = {
    "prefetch_factor": 1,
    "chunk_size": 1,
    "buffer_size": 1,
    "profile_depth": 1,
}
_SHARES = {"max_memory_usage", "optimization_threshold"}
_CHOICES = {"profile_level": LEVELS, "compression": ("gzip", "zstd", "none")}
_FOLDERS = {"profile_dir", "cache_dir"}


def _unknown(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"Config has no field {name!r}{hint}"


def _checked(field: "dataclasses.Field[Any]", value: Any) -> Any:
    """The value in the field's type; ConfigError when it cannot be."""
    default: Any = field.default
    kind: Any = type(default)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if kind is str and hasattr(value, "__fspath__"):
        value = str(value.__fspath__())
    if type(value) is not kind:
        raise ConfigError(
            f"Config.{field.name} must be {kind.__name__}, "
            f"not {type(value).__name__} ({value!r})"
        )
    if kind is str:
        _check_text(field.name, value)
    elif kind in (int, float):
        _check_number(field.name, value)
    return value


def _check_text(name: str, value: str) -> None:
    choices = _CHOICES.get(name)
    if choices and value not in choices:
        near = difflib.get_close_matches(value, choices, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ConfigError(f"Config.{name} must be one of {', '.join(choices)}{hint}")
    if name in _FOLDERS and (not value or "\0" in value):
        raise ConfigError(f"Config.{name} is no folder ({value!r})")


def _check_number(name: str, value: float) -> None:
    if not value >= 0 or value == float("inf"):  # NaN neither
        raise ConfigError(f"Config.{name} cannot be negative or endless ({value!r})")
    if name in _INTERVALS and value < 0.01:
        raise ConfigError(f"Config.{name} must be at least 0.01 s ({value!r})")
    if value < _LEAST.get(name, 0):
        raise ConfigError(f"Config.{name} must be at least {_LEAST[name]} ({value!r})")
    if name in _SHARES and value > 1:
        raise ConfigError(f"Config.{name} is a share: at most 1 ({value!r})")
