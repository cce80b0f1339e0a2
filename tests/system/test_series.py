# labels: no_asan
"""The course of a run's metrics arrives in the store: bounded, with its peaks and its last value."""

import json
import sqlite3

import pytest
from sonde_test import environment, program, sonde

STEPS, MOST = 30_000, 10_000


@pytest.fixture
def here(tmp_path):
    env = environment(SONDE_DIR=tmp_path / ".sonde")

    def go(*words, **options):
        return sonde(*words, cwd=tmp_path, env=env, **options)

    go.path = tmp_path
    return go


def points(here, key):
    """As anybody reads them: from the documented view, without Sonde, once it has caught up."""
    here("search")
    with sqlite3.connect(here.path / ".sonde" / "sonde.db") as db:
        query = "SELECT step, value FROM metric_points WHERE key = ? ORDER BY step"
        return db.execute(query, [key]).fetchall()


def test_a_long_course_is_thinned_without_losing_peaks_or_its_end(here):
    here("run", "-q", "--", program("metric_course"), STEPS)
    loss = points(here, "loss")
    assert 1000 < len(loss) <= MOST
    steps, values = zip(*loss)
    assert (STEPS // 3, 99.0) in loss and (STEPS // 2, -5.0) in loss
    assert loss[-1] == (STEPS, 1 / STEPS) and steps[0] <= 4
    assert list(steps) == sorted(steps) and len(set(steps)) == len(steps)
    truth = {1 / s: s for s in range(1, STEPS + 1)}
    assert all(truth[v] == s for s, v in loss if v not in (99.0, -5.0))
    assert max(values) == 99.0 and min(values) == -5.0


def test_short_courses_are_whole(here):
    here("run", "-q", "--", program("metric_course"), 500)
    assert [s for s, _ in points(here, "loss")] == list(range(1, 501))
    assert points(here, "queue") == [(100 * i, i % 7) for i in range(1, 6)]
    assert points(here, "accuracy") == [(500, 0.93)]
    assert points(here, "odd") == [(500, None)]  # NaN is no number, and no zero
    # Metrics stay what they were: the last value.
    found = json.loads(here("search", "--json", "--where", "metrics.accuracy >= 0.9").stdout)
    assert len(found["experiments"]) == 1


def test_trends_tell_the_course_of_one_run(here):
    here("run", "-q", "--", program("metric_course"), 3000)
    answer = json.loads(here("trends", "--run", "@last", "--json", "-m", "loss").stdout)
    (loss,) = answer["series"]
    assert (loss["max"], loss["max_step"]) == (99.0, 1000)
    assert (loss["min"], loss["min_step"]) == (-5.0, 1500)
    assert loss["first"] == 1.0 and loss["last"] == 1 / 3000 and loss["slope_high"] < 0
    text = here("trends", "--run", "@last").stdout
    assert "accuracy: 1 point, step 3000: 0.93" in text and "queue: 30 points" in text
    done = here("trends", "--run", "@last", "-m", "other", check=False)
    assert done.returncode == 1 and "no series 'other'" in done.stderr
    done = here("trends", "--run", "@last", "--where", "x = 1", check=False)
    assert done.returncode == 2


def test_series_of_log_records_are_summed_up(here):
    lines = '{"id": "one", "metrics": {"loss": 1}, "series": {"loss": [[1, 3], [2, 1]]}}\n'
    here("log", "--jsonl", "-", input=lines)
    text = here("show", "one").stdout
    assert "loss: 2 points, step 1 to 2: 3 → 1, least 1, most 3" in text
    answer = json.loads(here("trends", "--run", "one", "--json").stdout)
    assert answer["series"][0]["points"] == 2
