"""Help, version, and what a mistyped word gets for an answer."""

import re
import subprocess

import pytest
from sonde_test import SONDE, SOURCE, environment, sonde


def verbs():
    return re.findall(r"^  (\w+)  +\S", sonde("help", "all").stdout, re.M)


def test_version():
    (version,) = re.findall(
        r'SONDE_VERSION "([^"]+)"', (SOURCE / "include/sonde/sonde.h").read_text()
    )
    assert sonde("--version").stdout == f"sonde {version}\n"


def test_the_first_page_is_short_and_leads_on():
    text = sonde("--help").stdout
    assert text == sonde("help").stdout == sonde().stdout
    assert "run" in text and "report" in text and "sonde help all" in text
    assert len(text.splitlines()) < 24


def test_help_all_has_every_verb():
    assert set(verbs()) >= set("run report demo list show bench export recover".split())


@pytest.mark.parametrize("verb", "run report demo list show bench export recover".split())
def test_every_verb_explains_itself(verb):
    text = sonde(verb, "--help").stdout
    assert f"Usage: sonde {verb}" in text
    assert sonde("help", verb).stdout == text
    assert max(map(len, text.splitlines())) <= 90


@pytest.mark.parametrize(
    "word, meant", [("rum", "run"), ("reprot", "report"), ("lst", "list"), ("RUN", "run"),
                    ("expor", "export"), ("recov", "recover")]
)
def test_a_mistyped_verb_is_guessed(word, meant):
    done = sonde(word, check=False)
    assert done.returncode == 2
    assert f"did you mean '{meant}'?" in done.stderr


def test_a_program_instead_of_a_verb_is_told_how():
    done = sonde("/bin/true", check=False)
    assert done.returncode == 2
    assert "sonde run -- /bin/true" in done.stderr


def test_nonsense_is_not_guessed():
    done = sonde("qqqqqqqq", check=False)
    assert done.returncode == 2
    assert "did you mean" not in done.stderr


def test_an_answer_that_cannot_be_written_is_a_failure():
    with open("/dev/full", "w") as full:
        done = subprocess.run([SONDE, "help", "all"], stdout=full, stderr=subprocess.PIPE,
                              env=environment(), text=True)
    assert done.returncode == 2
    assert "standard output" in done.stderr
