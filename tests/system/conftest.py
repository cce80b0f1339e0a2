"""What several tests need made and taken away."""

import os
import time

import pytest
from cgroups import MEMORY, UNIFIED


@pytest.fixture
def group():
    """A control group for a test, with a way to give it a limit."""
    v1 = (MEMORY / "memory.limit_in_bytes").exists()
    parent = MEMORY if v1 else UNIFIED
    path = parent / f"sonde-test-{os.getpid()}"
    try:
        path.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    limit = path / ("memory.limit_in_bytes" if v1 else "memory.max")
    if not limit.exists():
        path.rmdir()
        pytest.skip("the memory controller is not handed down to us")
    yield path, limit
    for _ in range(100):
        try:
            path.rmdir()
            return
        except OSError:
            time.sleep(0.05)
