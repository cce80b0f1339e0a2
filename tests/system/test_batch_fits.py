# labels: no_asan
# timeout: 300
"""The batch that will not fit, predicted from smaller ones and then tried."""

import subprocess
from pathlib import Path

import pytest
from cgroups import in_group
from sonde_test import BUILD, environment, program, report, run, sonde

PYTHON = "/usr/bin/python3"
PROG = Path(__file__).resolve().parent / "progs" / "batch_sizes.py"
MIB = 2.0**20
LIMIT_MB = 500
NODES_MB = 16 * 1000 * 64 * 4 / MIB  # of a batch, for each LARGEST


def has_torch():
    found = list((BUILD / "python" / "sonde").glob("_sonde.*.so"))
    done = subprocess.run([PYTHON, "-c", "import torch"], capture_output=True, check=False)
    return bool(found) and done.returncode == 0


pytestmark = pytest.mark.skipif(
    not has_torch(), reason="no Python package, or no torch to watch"
)


def fit_of(answer):
    return answer["batch_memory"]["host"]


def test_memory_goes_with_what_is_in_a_batch(tmp_path):
    """A step of graphs holds its batch and 24 times as much (an object with fields: as
    batches of graphs are); one of sequences samples × length² floats, s²/4 a sample."""
    answer = run(tmp_path / "graphs", PYTHON, PROG, "graphs", 40).report()
    fit = fit_of(answer)
    assert fit["per_byte"] == pytest.approx(25, rel=0.02)
    assert not fit["padded"] and fit["data_set_seen"]
    assert fit["possible_mb"] >= fit["likely_mb"] >= 0.9 * fit["largest_mb"]
    assert answer["batch_memory"]["gpu"] is None
    batch = answer["loaders"][0]["recent_batches"][-1]
    assert batch["heap_peak_bytes"] > 24 * batch["bytes"]
    assert answer["loaders"][0]["sample_bytes"]["max"] <= (200 + 1200 + 700) * 256
    methods = {p["metric"]: p["status"] for p in answer["provenance"]}
    assert methods["batch_memory.host"] == "modelled"

    fit = fit_of(run(tmp_path / "padded", PYTHON, PROG, "padded", 60).report())
    assert fit["per_square_byte"] == pytest.approx(0.25, rel=0.02)
    assert fit["padded"] and fit["possible_mb"] == fit["largest_mb"]


def test_one_that_fits_by_the_report_fits_and_one_that_does_not_is_killed(tmp_path, group):
    path, limit = group
    limit.write_text(str(int(LIMIT_MB * MIB)))
    limited = {"preexec_fn": in_group(path), "check": False}
    answer = run(tmp_path / "small", PYTHON, PROG, "graphs", 40, **limited).report()
    fit = fit_of(answer)
    assert fit["limit_mb"] == pytest.approx(LIMIT_MB)
    assert fit["fits_over_largest"] > 1.5
    assert not any("will not fit" in b["description"] for b in answer["bottlenecks"])

    small = run(tmp_path / "fits", PYTHON, PROG, "graphs", 40,
                0.75 * fit["fits_mb"] / NODES_MB, **limited)
    assert small.returncode == 0
    large = run(tmp_path / "not", PYTHON, PROG, "graphs", 40,
                1.25 * fit["fits_mb"] / NODES_MB, **limited)
    assert large.returncode != 0
    killed = report(tmp_path / "not")
    assert killed["run"]["exit"]["cause"] == "oom_cgroup"
    assert fit_of(killed)["fits_mb"] == pytest.approx(fit["fits_mb"], rel=0.2)
    (pressure,) = [b for b in killed["bottlenecks"] if b["id"] == "memory_pressure"]
    assert "will not fit into memory; the largest was one" in pressure["description"]
    assert any(e["metric"] == "batch_that_fits_over_largest" for e in pressure["evidence"])
    text = " ".join(sonde("report", tmp_path / "not", "--full").stdout.split())
    assert "will fit, modelled" in text


def test_without_the_heap_nothing_is_said(tmp_path):
    answer = run(
        tmp_path / "run", PYTHON, PROG, "graphs", 12, options=["--no-preload"]
    ).report()
    assert fit_of(answer) is None


def test_pages_of_libraries_are_no_pressure(tmp_path, group):
    """Resident are 97 % of the limit, a third of that libraries: the kernel takes them back."""
    path, limit = group
    limit.write_text(str(int(425 * MIB)))
    done = run(tmp_path / "run", PYTHON, PROG, "graphs", 30, preexec_fn=in_group(path))
    answer = done.report()
    assert answer["summary"]["peak_rss_mb"] > 0.9 * 425
    assert not [b for b in answer["bottlenecks"] if b["id"] == "memory_pressure"]


def test_a_card_s_peak_is_known_of_batches_that_raised_it(tmp_path):
    """NVML is played: 80 GiB, of which some are in use by whom nobody knows."""
    env = environment(
        SONDE_NVML=program("fake_nvml.so"), FAKE_NVML="cards=1", PYTHONPATH=BUILD / "python"
    )
    prog = PROG.with_name("batch_card.py")
    answer = run(tmp_path / "run", PYTHON, prog, env=env).report()
    fit = answer["batch_memory"]["gpu"]
    assert fit["per_byte"] == pytest.approx(4000, rel=0.01)
    assert fit["base_mb"] == pytest.approx(1024, rel=0.01)
    batches = answer["loaders"][0]["recent_batches"]
    known = [b["gpu_peak_bytes"] for b in batches if b["gpu_peak_bytes"]]
    assert 3 <= fit["batches"] <= len(known) < len(batches)
    assert known == sorted(known)
    used = answer["monitors"]["gpu_memory/gpu0"]["max"]
    room = fit["limit_mb"] - (used - known[-1] / MIB - 256)
    assert fit["fits_mb"] == pytest.approx((room - 1024) / 4000, rel=0.01)
