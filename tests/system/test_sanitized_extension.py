# timeout: 600
"""The Python extension under AddressSanitizer: zones by the million, loaders of all kinds.

Only in the preset `asan` (cmake/python_sanitized.cmake). The interpreter is Debian's own:
the sanitizers' libraries are preloaded, its own leaks are not looked for, its memory comes
from malloc so that every block of an object is guarded.
"""

import subprocess
from pathlib import Path

import pytest
from sonde_test import BUILD, environment

PYTHON = "/usr/bin/python3"
PACKAGE = BUILD / "python-sanitized"
PROGS = Path(__file__).resolve().parent / "progs"
LEAKS = Path(__file__).resolve().parents[1] / "python" / "test_leaks.py"

pytestmark = pytest.mark.skipif(
    not list((PACKAGE / "sonde").glob("_sonde.*.so")), reason="not a sanitized build"
)


def library(name):
    words = ["gcc", f"-print-file-name={name}"]
    return subprocess.run(words, capture_output=True, text=True).stdout.strip()


def sanitized(*arguments):
    env = environment(
        LD_PRELOAD=f"{library('libasan.so')}:{library('libubsan.so')}",
        ASAN_OPTIONS="detect_leaks=0:halt_on_error=1:quarantine_size_mb=1",
        UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1",
        PYTHONMALLOC="malloc",
        PYTHONPATH=PACKAGE,
        SONDE_COMMAND="/bin/false",  # a sanitized one would meet the preloaded library
        OMP_NUM_THREADS=1,
    )
    done = subprocess.run(
        [PYTHON, *map(str, arguments)], env=env, capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "Sanitizer" not in done.stderr and "runtime error" not in done.stderr
    return done.stdout


def test_ten_million_zones_touch_nothing_of_others(tmp_path):
    text = LEAKS.read_text()
    script = text.split('SCRIPT = """')[1].split('"""')[0]
    # The sanitizer keeps what was freed for a while, and shadows of all of it.
    (tmp_path / "s.py").write_text(script.replace("grown < 4,", "grown < 16,"))
    said = sanitized(tmp_path / "s.py", "on", tmp_path / "run", 2_000_000)
    assert "MiB" in said


def test_loaders_of_all_kinds_touch_nothing_of_others(tmp_path):
    if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode:
        pytest.skip("python3-torch is not installed")
    said = sanitized(PROGS / "loader_kinds.py", tmp_path / "run")
    assert said.splitlines() == ["KeyError", "KeyError", "done"]
    assert list((tmp_path / "run").glob("loader-*"))
