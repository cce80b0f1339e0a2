"""Other people's parsers, which tools/setup puts aside; a test without its reader is
skipped and says so."""

import base64
import importlib
import os
import shutil
import subprocess
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


def speedscope_page(document, scratch):
    """speedscope itself, in Chromium, after it has imported the document: its page."""
    chromium = shutil.which("chromium")
    if not chromium:
        pytest.skip("no chromium")
    page = speedscope_schema().parent / "index.html"
    script = scratch / "profile.js"
    data = base64.b64encode(Path(document).read_bytes()).decode()
    script.write_text(f'speedscope.loadFileFromBase64("profile.json", "{data}")')
    done = subprocess.run(
        [
            chromium, "--headless", "--no-sandbox", "--disable-gpu", "--use-angle=swiftshader",
            "--enable-unsafe-swiftshader", "--allow-file-access-from-files",
            f"--user-data-dir={scratch / 'chromium'}", "--virtual-time-budget=20000",
            "--dump-dom", f"file://{page}#localProfilePath={script}",
        ],
        capture_output=True, text=True, timeout=90,
    )  # fmt: skip
    if done.returncode != 0 or "<html" not in done.stdout:
        pytest.skip(f"chromium does not run here: {done.stderr[-200:]}")
    return done.stdout
