"""pytest fixture `sonde_regression`: fails a test that became slower than its baseline.

    def test_training(sonde_regression):
        with sonde_regression(threshold=0.3):
            train()

The entry is the test's id, the file --sonde-baseline (default sonde-baseline.json in the root
directory); --sonde-update writes new entries for all.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Optional

import pytest

from ._regression import RegressionCheck, check_regression


def pytest_addoption(parser: Any) -> None:
    group = parser.getgroup("sonde")
    group.addoption("--sonde-baseline", default=None, help="baseline file (JSON)")
    group.addoption(
        "--sonde-update", action="store_true", help="replace the baseline's entries"
    )


@pytest.fixture
def sonde_regression(request: Any) -> Callable[..., RegressionCheck]:
    """Makes a check of this test: `sonde_regression(name=None, threshold=0.2, …)`."""
    config = request.config
    baseline = config.getoption("--sonde-baseline")
    path = (
        Path(baseline)
        if baseline
        else Path(str(config.rootpath)) / "sonde-baseline.json"
    )
    update = "always" if config.getoption("--sonde-update") else "missing"

    def check(
        name: Optional[str] = None, threshold: float = 0.2, **more: Any
    ) -> RegressionCheck:
        more.setdefault("update", update)
        return check_regression(name or request.node.nodeid, threshold, path, **more)

    return check
