# labels: no_asan
"""<sonde/query.h>: a C program logs and searches with libsonde-query alone."""

import json
import subprocess

import pytest
from sonde_test import BUILD, SOURCE, environment, sonde

LIBRARY = BUILD / "libsonde-query.so"
pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="built without SQLite")

FLAGS = ["-O2", "-Wall", "-Wextra", "-Werror", "-I", SOURCE / "include"]


def build(tmp_path, source):
    program = tmp_path / "program"
    words = ["cc", *FLAGS, source, "-o", program, f"-L{BUILD}", f"-Wl,-rpath,{BUILD}"]
    done = subprocess.run([*words, "-lsonde-query", "-lm"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return program


def test_the_example_logs_and_finds(tmp_path):
    program = build(tmp_path, SOURCE / "examples" / "experiments.c")
    env = environment(SONDE_DIR=tmp_path / ".sonde")
    done = subprocess.run([program], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    *lines, last = done.stdout.splitlines()
    assert last == "50 match" and len(lines) == 3
    scores = [json.loads(line)["metrics"]["score"] for line in lines]
    assert scores == sorted(scores, reverse=True)
    answer = json.loads(sonde("search", "--json", "--sort", "metrics.score", env=env).stdout)
    assert answer["total"] == 100 and answer["experiments"][0]["metrics"]["score"] >= scores[0]


MISTAKES = r"""
#include <stdio.h>
#include <string.h>
#include <sonde/query.h>
int main(void)
{
    struct sonde_store *s;
    char id[SONDE_EXPERIMENT_ID] = "";
    if (sonde_store_open("/dev/null/no", &s) == 0)
        return 1;
    if (sonde_store_open(NULL, &s) < 0)
        return 2;
    if (sonde_store_log(s, "{\"metrics\": {\"a\": \"x\"}}", id) == 0 || id[0] ||
        !strstr(sonde_store_message(s), "not a number"))
        return 3;
    if (sonde_store_log(s, "{\"id\": \"one\"}", id) < 0 || strcmp(id, "one") != 0)
        return 4;
    if (sonde_store_log(s, "{\"id\": \"one\"}", NULL) == 0)
        return 5;
    struct sonde_search q = { .size = sizeof q, .where = "a >" };
    if (sonde_store_search(s, &q, NULL, NULL) >= 0 ||
        !strstr(sonde_store_message(s), "character"))
        return 6;
    q.where = NULL;
    if (sonde_store_search(s, &q, NULL, NULL) != 1 ||
        sonde_store_search(s, NULL, NULL, NULL) != 1)
        return 7;
    q.like = "nobody";
    if (sonde_store_search(s, &q, NULL, NULL) >= 0)
        return 8;
    sonde_store_close(s);
    return 0;
}
"""


def test_mistakes_have_sentences(tmp_path):
    (tmp_path / "mistakes.c").write_text(MISTAKES)
    program = build(tmp_path, tmp_path / "mistakes.c")
    env = environment(SONDE_DIR=tmp_path / ".sonde")
    assert subprocess.run([program], env=env).returncode == 0


def test_nothing_else_is_exported():
    names = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True)
    exported = [line.split()[2] for line in names.stdout.splitlines() if " T " in line]
    assert exported and all(name.startswith("sonde_store_") for name in exported)
