"""The manual page and the completions say what the program says."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

SONDE = Path(os.environ["SONDE_BUILD"]) / "sonde"
SOURCE = Path(os.environ["SONDE_SOURCE"])


def say(*args: str) -> str:
    result = subprocess.run([SONDE, *args], capture_output=True, text=True, check=True)
    return result.stdout + result.stderr


def verbs() -> set[str]:
    return set(re.findall(r"^  (\w+) {2,}", say("help", "all"), re.M)) - {"sonde"}


def options(text: str) -> set[str]:
    return set(re.findall(r"--[a-z][a-z-]+", text))


def manual(section: str | None = None) -> str:
    page = (SOURCE / "docs/sonde.1").read_text().replace("\\-", "-")
    if section:
        page = page.split(f".SH {section}\n")[1].split("\n.SH ")[0]
    return page


def test_the_manual_lists_every_verb() -> None:
    assert set(re.findall(r"^\.B (\w+)$", manual("VERBS"), re.M)) - {"sonde"} == verbs()


def test_options_in_the_manual_exist() -> None:
    assert options(manual("OPTIONS OF RUN")) <= options(say("run", "--help"))


@pytest.mark.parametrize("name", ["sonde.bash", "_sonde"])
def test_completions_know_every_verb(name: str) -> None:
    text = (SOURCE / "tools/completion" / name).read_text()
    for verb in verbs():
        assert re.search(rf"\b{verb}\b", text), verb


def test_bash_completes_verbs_and_options() -> None:
    script = f"""
        PATH={SONDE.parent}:$PATH
        source {SOURCE}/tools/completion/sonde.bash
        COMP_WORDS=(sonde recov) COMP_CWORD=1; _sonde; echo "${{COMPREPLY[@]}}"
        COMP_WORDS=(sonde run --max) COMP_CWORD=2; _sonde; echo "${{COMPREPLY[@]}}"
    """
    output = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert output.stdout.split() == ["recover", "--max-trace"]
