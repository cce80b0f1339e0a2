"""The extension must load after anything else: libraries that are loaded late share a few
hundred bytes of static thread memory, and torch has taken some."""

import re
import shutil
import subprocess

import pytest

MOST_BYTES = 320


@pytest.mark.skipif(not shutil.which("readelf"), reason="no readelf")
def test_the_extension_needs_little_static_thread_memory():
    from sonde import _sonde

    headers = subprocess.run(
        ["readelf", "-lW", _sonde.__file__], capture_output=True, text=True, check=True
    ).stdout
    sizes = [line.split()[5] for line in headers.splitlines() if re.match(r"\s+TLS", line)]
    assert sum(int(size, 16) for size in sizes) <= MOST_BYTES
