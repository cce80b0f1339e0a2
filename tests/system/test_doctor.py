"""`sonde doctor` tells what can be measured here, and what would mend the rest."""

import json
import os
import subprocess

import pytest
from sonde_test import environment, sonde

STATES = {"ok", "limited", "unavailable"}


def answer(**options):
    done = sonde("doctor", "--json", check=False, **options)
    return done.returncode, json.loads(done.stdout)


def check(document, name):
    return next(c for c in document["checks"] if c["id"] == name)


def test_everything_is_answered_and_explained(tmp_path):
    status, document = answer(cwd=tmp_path)
    assert document["schema"] == "sonde.doctor/1"
    assert status == 0 and document["core_works"] is True
    assert len({c["id"] for c in document["checks"]}) == len(document["checks"]) >= 20
    for c in document["checks"]:
        assert c["state"] in STATES and c["found"] and c["name"] and c["group"]
        assert c["state"] == "ok" or c["why"], c
    assert os.listdir(tmp_path) == []  # nothing is left behind


def test_the_table_fits_80_columns_and_plain_ascii(tmp_path):
    env = environment(LC_ALL="C", COLUMNS="200")
    done = sonde("doctor", cwd=tmp_path, env=env)
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    assert done.stdout.isascii() and "\x1b" not in done.stdout
    assert "The core works." in done.stdout


def test_only_problems_on_request(tmp_path):
    done = sonde("doctor", "--problems", cwd=tmp_path)
    assert not any(line.startswith("  ok ") for line in done.stdout.splitlines())


def test_a_place_that_cannot_be_written_is_essential(tmp_path):
    (tmp_path / "closed").mkdir(mode=0o500)
    env = environment(SONDE_DIR="/proc/nowhere")
    status, document = answer(cwd=tmp_path, env=env)
    assert status == 1 and document["core_works"] is False
    assert check(document, "run_directory")["state"] == "unavailable"
    assert "SONDE_DIR" in check(document, "run_directory")["fix"]


def test_a_library_that_does_not_load_is_told(tmp_path):
    fake = tmp_path / "libsonde-preload.so"
    fake.write_text("no library")
    _, document = answer(cwd=tmp_path, env=environment(SONDE_PRELOAD_LIBRARY=fake))
    assert check(document, "preload")["state"] == "unavailable"
    assert "cannot be preloaded" in check(document, "preload")["why"]


def test_another_user_sees_other_limits(tmp_path):
    if os.getuid() != 0:
        pytest.skip("only root can become somebody else")

    def nobody():
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)

    done = subprocess.run([str(__import__("sonde_test").SONDE), "doctor", "--json"],
                          cwd="/", env=environment(SONDE_DIR="/nowhere"),
                          capture_output=True, text=True, preexec_fn=nobody)
    document = json.loads(done.stdout)
    assert done.returncode == 1
    assert check(document, "run_directory")["state"] == "unavailable"


def test_words_are_wrong_usage():
    assert sonde("doctor", "please", check=False).returncode == 2
