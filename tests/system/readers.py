"""Other people's parsers, which tools/setup puts aside; a test without its reader is
skipped and says so."""

import importlib
import os
import shutil
import sys
from pathlib import Path

import pytest

PLACE = Path(
    os.environ.get("SONDE_READERS")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sonde/readers"
)


def module(name):
    """A module of PyPI's."""
    path = str(PLACE / "python")
    if path not in sys.path:
        sys.path.insert(0, path)
    try:
        return importlib.import_module(name)
    except ImportError as error:
        pytest.skip(f"no reader: {error} (tools/setup test)")


def go():
    found = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if not found:
        pytest.skip("no go for `go tool pprof` (tools/setup test)")
    return found


def speedscope_schema():
    path = PLACE / "node_modules/speedscope/dist/release/file-format-schema.json"
    if not path.exists():
        pytest.skip("no speedscope from npm (tools/setup test)")
    return path
