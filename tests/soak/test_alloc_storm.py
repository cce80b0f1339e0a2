"""A hundred million allocations by 64 threads, with forks in between: nothing is lost."""

import json
import os
import subprocess
from pathlib import Path

BUILD = Path(os.environ["SONDE_BUILD"])
THREADS, ALLOCATIONS, FORKS = 64, 100_096_000, 200


def test_a_hundred_million_allocations_lose_nothing(tmp_path):
    run = tmp_path / "run"
    storm = [BUILD / "progs" / "alloc_storm", THREADS, ALLOCATIONS, FORKS]
    command = [BUILD / "sonde", "run", "--quiet", "-o", run, "--", *storm]
    subprocess.run(list(map(str, command)), check=True, timeout=3600)
    report = subprocess.run(
        [BUILD / "sonde", "report", run, "--json"], check=True, capture_output=True
    )
    answer = json.loads(report.stdout)["allocations"]
    sizes = {s["up_to"]: s["count"] for s in answer["sizes"]}
    assert sizes[4096] == ALLOCATIONS
    assert sizes[8192] == FORKS * 1000
    assert answer["coverage"]["samples_lost"] == 0
