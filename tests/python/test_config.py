"""sonde.Config: every field of the documents, checked, none silently without effect."""

import dataclasses

import pytest

import sonde

DOCUMENTED = {
    # code profiling of training pipelines: 33 switches
    "enable_profiling": True, "profile_level": "detailed", "save_profiles": True,
    "profile_dir": "profiles", "enable_performance_monitoring": True,
    "monitor_interval": 1.0, "track_memory": True, "track_cpu": True, "track_gpu": True,
    "track_io": True, "profile_data_loading": True, "profile_preprocessing": True,
    "profile_augmentation": True, "profile_collate": True, "profile_forward_pass": True,
    "profile_backward_pass": True, "profile_optimizer_step": True,
    "profile_gradient_computation": True, "enable_memory_profiling": True,
    "track_allocations": True, "track_deallocations": True, "memory_snapshots": True,
    "enable_gpu_profiling": True, "track_gpu_memory": True, "track_gpu_utilization": True,
    "track_cuda_events": True, "enable_io_profiling": True, "track_file_operations": True,
    "track_network_operations": True, "generate_reports": True,
    "create_visualizations": True, "export_to_json": True, "export_to_csv": True,
    # resource and compute tracking
    "track_carbon": False, "detailed_memory": True, "memory_interval": 0.1,
    "track_cpu_temp": True, "track_network": False, "enable_line_profiling": True,
    "estimate_flops": True, "track_system": True, "system_interval": 1.0,
    # profiling and data optimisation
    "enabled": True, "profile_cpu": True, "profile_memory": True, "profile_gpu": True,
    "profile_depth": 10, "min_time_threshold": 0.001, "min_memory_threshold": 1048576,
    "auto_optimize": True, "optimization_threshold": 0.1, "real_time_monitoring": True,
    "alert_threshold": 5.0, "monitoring_interval": 1.0, "log_precision": False,
    "log_memory_usage": False, "optimize_loading": True, "prefetch_factor": 2,
    "num_workers": 4, "pin_memory": True, "persistent_workers": True,
    "memory_efficient": True, "max_memory_usage": 0.8, "chunk_size": 1000,
    "enable_caching": True, "cache_dir": "cache", "cache_size": 1000,
    "optimize_preprocessing": True, "batch_preprocessing": True,
    "parallel_preprocessing": True, "preprocessing_workers": 2, "optimize_io": True,
    "compression": "gzip", "buffer_size": 8192, "async_io": True,
    "monitor_performance": True, "log_metrics": True, "streaming": False,
    "mixed_precision": False,
}  # fmt: skip


def test_every_documented_field_is_there_with_its_default():
    assert sonde.Config().to_dict() == DOCUMENTED


def test_unknown_fields_name_the_nearest():
    with pytest.raises(sonde.ConfigError, match="'profile_levle'.*'profile_level'"):
        sonde.Config(profile_levle="basic")
    config = sonde.Config()
    with pytest.raises(sonde.ConfigError, match="'track_cpu'"):
        config.track_cpus = True
    with pytest.raises(sonde.ConfigError, match="no field 'zzz'"):
        sonde.session(zzz=1)


def test_ill_typed_values_are_refused():
    with pytest.raises(sonde.ConfigError, match="track_gpu must be bool, not int"):
        sonde.Config(track_gpu=1)
    with pytest.raises(sonde.ConfigError, match="num_workers must be int, not bool"):
        sonde.Config(num_workers=True)
    with pytest.raises(sonde.ConfigError, match="detailed"):
        sonde.Config(profile_level="detail")
    with pytest.raises(sonde.ConfigError, match="negative"):
        sonde.Config(alert_threshold=-1)
    with pytest.raises(sonde.ConfigError, match="0.01"):
        sonde.Config(monitor_interval=0)
    assert sonde.Config(monitor_interval=2).monitor_interval == 2.0


@pytest.mark.parametrize(
    "field, value, says",
    [
        ("compression", "gzpi", "did you mean 'gzip'"),
        ("max_memory_usage", 1.5, "share"),
        ("optimization_threshold", 10.0, "share"),
        ("prefetch_factor", 0, "at least 1"),
        ("chunk_size", 0, "at least 1"),
        ("buffer_size", 0, "at least 1"),
        ("cache_dir", "", "no folder"),
        ("preprocessing_workers", -1, "negative"),
        ("cache_size", 1.0, "must be int"),
        ("streaming", "yes", "must be bool"),
        ("async_io", None, "must be bool"),
        ("alert_threshold", float("nan"), "negative"),
        ("alert_threshold", float("inf"), "endless"),
    ],
)
def test_fields_of_optimisation_are_checked_as_well(field, value, says):
    with pytest.raises(sonde.ConfigError, match=f"{field}.*{says}"):
        sonde.Config(**{field: value})


def test_presets():
    assert sonde.standard() == sonde.Config()
    light = sonde.lightweight(track_gpu=False)
    assert light.profile_level == "basic" and not light.monitors()
    assert not light.track_gpu and not light.export_to_csv


def test_fields_without_effect_say_so():
    pending = sonde.Config().pending()
    assert "sonde run" in pending["track_allocations"]
    assert set(pending) == {
        "track_allocations",
        "track_deallocations",
        "track_file_operations",
        "track_network_operations",
    }
    assert "track_allocations" not in sonde.Config(track_allocations=False).pending()
    effective = {
        "enable_profiling",
        "profile_forward_pass",
        "track_memory",
        "export_to_csv",
        "track_cuda_events",
    }
    assert not effective & set(pending)
    for field in dataclasses.fields(sonde.Config):
        assert field.metadata["text"] and field.name in sonde.Config.describe()
