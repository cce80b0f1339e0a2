"""The course of a metric that several ranks tell: each has its own in the store."""

import json
import sqlite3
import sys

from conftest import SONDE, environment, python


def test_every_rank_keeps_its_own_course(tmp_path):
    script = tmp_path / "ranks.py"
    # The launcher starts rank 1 before rank 0: it is the rank that counts, not the order.
    script.write_text(
        "import os, subprocess, sys\n"
        "if 'RANK' not in os.environ:\n"
        "    for rank in (1, 0, 2):\n"
        "        env = {**os.environ, 'RANK': str(rank), 'WORLD_SIZE': '3'}\n"
        "        subprocess.run([sys.executable, __file__], env=env, check=True)\n"
        "    sys.exit()\n"
        "import sonde\n"
        "rank = int(os.environ['RANK'])\n"
        "for i in range(1, 5):\n"
        "    sonde.step()\n"
        "    sonde.metric('loss', 100 * rank + i)\n"
        "if rank == 2:\n"
        "    sonde.metric('only', 7)\n"
    )
    env = environment(SONDE_DIR=tmp_path / ".sonde")
    start = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode)"

    def sonde(*words):
        return python("-c", start, SONDE, *words, env=env, cwd=tmp_path).stdout

    sonde("run", "-q", "--", sys.executable, script)
    sonde("search")
    with sqlite3.connect(tmp_path / ".sonde" / "sonde.db") as db:
        rows = db.execute("SELECT key, step, value FROM metric_points ORDER BY key, step").fetchall()
    course = {}
    for key, step, value in rows:
        course.setdefault(key, []).append((step, value))
    expected = {
        "loss": [(i, i) for i in range(1, 5)],
        "loss@rank1": [(i, 100 + i) for i in range(1, 5)],
        "loss@rank2": [(i, 200 + i) for i in range(1, 5)],
    }
    assert {k: v for k, v in course.items() if k in expected} == expected
    assert [v for _, v in course["only"]] == [7] and set(course) == {*expected, "only"}
    answer = json.loads(sonde("trends", "--run", "@last", "--json", "-m", "loss@rank2"))
    assert answer["series"][0]["last"] == 204
