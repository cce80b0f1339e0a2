"""docs/reference-cli.md says what the binary says."""

import subprocess
import sys

from sonde_test import SONDE, SOURCE


def test_the_command_reference_is_up_to_date():
    tool = SOURCE / "tools" / "reference_cli"
    made = subprocess.run([sys.executable, tool, SONDE], capture_output=True, text=True, check=True)
    kept = (SOURCE / "docs" / "reference-cli.md").read_text()
    assert made.stdout == kept, "run: tools/reference_cli build/sonde > docs/reference-cli.md"
