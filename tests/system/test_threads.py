"""Thread churn, nesting that does not match, libraries that come and go."""

import pytest
from sonde_test import (
    assert_consistent,
    counts_by_name,
    counts_by_path,
    operation,
    program,
    run,
    sonde,
    traces,
)


@pytest.mark.parametrize("at_once", [1, 8, 64])
def test_ten_thousand_short_threads_are_counted_exactly(tmp_path, at_once):
    done = run(tmp_path / "run", program("short_threads"), 10_000, 7, at_once)
    answer = done.report()
    counts = counts_by_path(answer)
    assert counts[("thread",)] == 10_000
    assert counts[("thread", "short")] == 70_000
    assert answer["summary"]["lost"] == 0
    assert_consistent(answer)


def test_more_threads_at_once_than_most_programs_have(tmp_path):
    done = run(tmp_path / "run", program("short_threads"), 1000, 2000, 200)
    answer = done.report()
    assert counts_by_path(answer)[("thread", "short")] == 2_000_000
    assert answer["summary"]["lost"] == 0


def unbalanced(tmp_path, mode, times):
    done = run(tmp_path / "run", program("unbalanced"), mode, times)
    answer = done.report()
    counts = counts_by_path(answer)
    assert counts[("good",)] == times + 100, "what follows a mistake must be right"
    assert counts[("good", "inner")] == times + 100
    assert_consistent(answer)
    return counts, sonde("report", done.directory).stdout, answer


@pytest.mark.parametrize("times", [1, 1000])
def test_a_missing_end_is_closed_by_the_zone_around_it(tmp_path, times):
    counts, text, answer = unbalanced(tmp_path, "missing", times)
    assert counts[("A",)] == times
    assert counts[("A", "B")] == times
    assert "unbalanced" in text.lower()


@pytest.mark.parametrize("times", [1, 1000])
def test_an_end_without_a_begin_is_reported_and_harmless(tmp_path, times):
    counts, text, answer = unbalanced(tmp_path, "extra", times)
    assert ("C",) not in counts or counts[("C",)] == 0
    assert "unbalanced" in text.lower() or "without a begin" in text.lower()


@pytest.mark.parametrize("times", [1, 1000])
def test_crossed_zones_are_reported_and_later_ones_are_right(tmp_path, times):
    counts, text, answer = unbalanced(tmp_path, "crossed", times)
    assert counts[("A",)] == times
    assert counts[("A", "B")] == times
    assert "unbalanced" in text.lower()


def test_recursion_deeper_than_anybody_keeps_does_no_harm(tmp_path):
    counts, text, answer = unbalanced(tmp_path, "deep", 3)
    down = sum(n for path, n in counts.items() if path[-1] in ("down", "(other paths)"))
    assert 3 * 100 <= down <= 3 * 1000


def test_an_instrumented_library_may_come_and_go(tmp_path):
    done = run(tmp_path / "run", program("dl_reload"), program("plugin.so"), 100)
    answer = done.report()
    counts = counts_by_path(answer)
    assert counts[("host",)] == 100
    assert counts[("host", "plugin")] == 500
    assert counts[("host", "plugin", "plugin inner")] == 500
    plugin = operation(answer, "host", "plugin")
    assert plugin["component"] == "plugins"
    assert plugin["phase"] == "preprocessing"
    assert plugin["tags"] in ("kind=dl", {"kind": "dl"})
    assert plugin["file"].endswith("plugin.c")


def test_zones_of_a_library_are_one_place_however_often_it_was_loaded(tmp_path):
    done = run(tmp_path / "run", program("dl_reload"), program("plugin.so"), 3000)
    answer = done.report()
    assert len(answer["operations"]) == 3
    assert counts_by_name(answer)["plugin"] == 15_000
    assert len(traces(done.directory)) == 1
