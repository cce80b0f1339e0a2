# timeout: 1800
"""tests/system/test_kill.py, a thousand times instead of two hundred."""

import os
import subprocess
import sys
from pathlib import Path

SYSTEM = Path(__file__).resolve().parents[1] / "system"


def test_a_thousand_kills():
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    env = {**os.environ, "SONDE_KILLS": "1000"}
    subprocess.run([*command, SYSTEM / "test_kill.py"], env=env, check=True)
