"""The Python interpreters of this machine that Sonde can look into."""

import functools
import glob
import os
import re
import shutil
import subprocess

SUPPORTED = range(9, 14)


def _candidates():
    yield from glob.glob("/usr/bin/python3.[0-9]*")
    yield from glob.glob("/usr/local/bin/python3.[0-9]*")
    yield from glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3.[0-9]*"))
    found = shutil.which("python3")
    if found:
        yield found


@functools.lru_cache
def interpreters():
    """One path per supported minor version, the real programs behind links and shims."""
    by_minor = {}
    for path in _candidates():
        if not re.fullmatch(r"python3(\.\d+)?", os.path.basename(path)):
            continue
        done = subprocess.run(
            [path, "-c", "import sys,os;print(sys.version_info[1],os.path.realpath(sys.executable))"],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0:
            minor, real = done.stdout.split()
            by_minor.setdefault(int(minor), real)
    return {m: p for m, p in sorted(by_minor.items()) if m in SUPPORTED}
