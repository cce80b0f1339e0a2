"""What programs do to themselves: exec, exit handlers, closed descriptors, other users."""

import json
import os
import subprocess
import time

import pytest
from sonde_test import (
    SONDE,
    assert_consistent,
    counts_by_name,
    counts_by_path,
    environment,
    program,
    report,
    run,
    sonde,
    traces,
)


def lives(tmp_path, *arguments, **options):
    return run(tmp_path / "run", program("lives"), *arguments, **options)


def test_forks_at_any_instant_of_busy_threads(tmp_path):
    done = run(tmp_path / "run", program("fork_storm"), 150, 50)
    answer = done.report()
    counts = counts_by_path(answer)
    assert counts[("child",)] == 150 * 50
    assert counts[("busy",)] == int(done.stdout)
    assert sum(n for p, n in counts.items() if p[0].startswith("only in child")) == 150
    assert not any("busy" in path and "child" in path for path in counts)
    assert answer["summary"]["lost"] == 0
    assert_consistent(answer)


def test_a_program_that_becomes_another_keeps_both_lives(tmp_path):
    done = lives(tmp_path, "replace", 50_000)
    counts = counts_by_path(done.report())
    assert counts[("before",)] == 50_000
    assert counts[("after",)] == 50_000
    assert counts[("left behind",)] == 1
    assert ("left behind", "after") not in counts
    assert len(traces(done.directory)) == 2


def test_a_child_that_outlives_the_program_is_counted_when_it_is_done(tmp_path):
    done = lives(tmp_path, "outlive", 30_000)
    end = time.monotonic() + 100
    while time.monotonic() < end:
        counts = counts_by_name(done.report())
        if counts["late"] == 30_000:
            break
        time.sleep(0.1)
    assert counts["late"] == 30_000
    assert counts["early"] == 10


def test_zones_after_main_are_counted(tmp_path):
    counts = counts_by_name(lives(tmp_path, "exits").report())
    assert counts == {"main": 3, "at exit": 5, "destructor": 7}


def test_threads_may_end_inside_zones_and_record_while_they_end(tmp_path):
    answer = lives(tmp_path, "thread_exits", 200).report()
    counts = counts_by_path(answer)
    assert counts[("right",)] == 200, "a thread's open zones are not its successor's"
    assert counts[("left open",)] == 200
    assert counts[("left open", "inside")] == 400
    assert counts_by_name(answer)["thread destructor"] == 200
    assert_consistent(answer)


@pytest.mark.parametrize("zones", [1000, 3_000_000])
def test_a_program_that_closes_our_descriptors_loses_nothing_of_its_own(tmp_path, zones):
    victim = tmp_path / "victim"
    done = lives(tmp_path, "close", victim, zones)
    assert victim.read_bytes() == b"precious"
    assert victim.stat().st_blocks <= 8, "space was reserved in somebody else's file"
    answer = done.report()
    counts = counts_by_name(answer)
    assert counts["zone"] == zones + 1000
    assert counts["child"] == 1000


def test_a_relative_run_directory_is_found_from_anywhere(tmp_path):
    done = sonde(
        "run", "-q", "-o", "here", "--", program("lives"), "chdir", 500, cwd=tmp_path
    )
    assert done.returncode == 0
    counts = counts_by_name(report(tmp_path / "here"))
    assert counts == {"parent": 10, "child": 500}


def test_a_program_that_gives_up_its_rights_runs_on(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("giving up rights needs root")
    tmp_path.chmod(0o755)
    done = lives(tmp_path, "setuid", 100_000, check=False)
    assert done.returncode == 0
    counts = counts_by_name(done.report())
    assert counts["before"] == 10
    assert counts["after"] == 100_000
    # The child may not write into root's directory: recorded, or said to be missing.
    text = sonde("report", done.directory).stdout
    assert counts["child"] == 100_000 or "not recorded" in text


def test_an_abort_is_named_with_the_zone_it_struck(tmp_path):
    done = lives(tmp_path, "abort", check=False)
    assert done.returncode == -6
    answer = done.report()
    assert counts_by_name(answer)["fatal"] == 1
    assert answer["run"]["exit"]["signal"] in (6, "SIGABRT")
    text = sonde("report", done.directory).stdout
    assert "SIGABRT" in text and "fatal" in text


def test_short_zones_are_left_out_on_request_and_counted(tmp_path):
    program_path = program("short_threads")
    done = run(tmp_path / "run", program_path, 10, 1000, 2, options=["--min-zone", "10s"])
    answer = done.report()
    counts = counts_by_name(answer)
    filtered = answer["summary"]["filtered"]
    assert counts["short"] == 0
    assert filtered + counts["thread"] >= 10_000
    assert filtered + sum(counts.values()) == 10_010


@pytest.mark.parametrize("size", ["2MiB", "8MiB"])
def test_lossy_drops_are_counted(tmp_path, size):
    zones = 4_000_000
    options = ["--lossy", "--max-trace", size]
    done = run(
        tmp_path / "run", program("disk_writer"), zones, 4, options=options, check=False
    )
    assert done.returncode == 7
    answer = done.report()
    count, lost = counts_by_name(answer)["write"], answer["summary"]["lost"]
    assert count <= zones
    assert count == zones or lost > 0
    # Each zone is two events; whatever is not in the report was dropped, and counted.
    assert 2 * count + 2 * lost >= 2 * zones


def test_an_inner_sonde_joins_the_outer_run(tmp_path):
    inner = [SONDE, "run", "--", program("fork_kinds"), "fork"]
    answer = run(tmp_path / "run", *inner, env=environment(SONDE_DIR=tmp_path / "store")).report()
    counts = counts_by_path(answer)
    assert counts[("child",)] == 50
    assert counts[("after",)] == 30
    assert not (tmp_path / "store" / "runs").exists() or not list(
        (tmp_path / "store" / "runs").iterdir()
    )


# ---- Names and numbers ----------------------------------------------------------------


def odd(tmp_path, *arguments):
    done = run(tmp_path / "run", program("odd_names"), *arguments)
    raw = subprocess.run(
        [SONDE, "report", done.directory, "--json"], env=environment(), capture_output=True
    )
    assert raw.returncode == 0
    answer = json.loads(raw.stdout.decode("utf-8", errors="strict"), parse_constant=fail)
    text = subprocess.run(
        [SONDE, "report", done.directory, "--full"], env=environment(), capture_output=True
    )
    assert text.returncode == 0
    assert b"\x1b[31m" not in text.stdout, "escape sequences of the program reach the terminal"
    return answer


def fail(constant):
    raise AssertionError(f"{constant} is not JSON")


def test_odd_bytes_in_names_stay_harmless(tmp_path):
    answer = odd(tmp_path, "texts")
    names = {o["name"] for o in answer["operations"]}
    assert {"Ünïcödé › 模型", '"quoted"', "line\nbreak", "%s%n%d", "last"} <= names
    assert sum(o["count"] for o in answer["operations"]) == 19


def test_values_that_are_no_numbers_do_not_break_the_report(tmp_path):
    answer = odd(tmp_path, "numbers")
    names = {o["name"]: o for o in answer["operations"]}
    assert names["zone"]["custom"]["extreme"]["max"] == 1e308
    assert names["phase out of range"]["count"] == 1
    assert answer["run"]["metrics"].get("nan") is None


@pytest.mark.parametrize("count", [3000, 40_000])
def test_every_zone_is_counted_however_many_names_there_are(tmp_path, count):
    answer = odd(tmp_path, "names", count)
    counts = counts_by_name(answer)
    assert sum(counts.values()) == count + 1
    assert counts["last"] == 1 or counts["(other names)"] + counts["(other paths)"] > 0
    assert_consistent(answer)


def test_every_zone_is_counted_however_many_paths_there_are(tmp_path):
    answer = odd(tmp_path, "paths", 10_000)
    counts = counts_by_name(answer)
    assert counts["root"] == 1
    assert sum(counts.values()) == 10_002
    assert counts["(other paths)"] > 0
    assert_consistent(answer)


@pytest.mark.parametrize("size", [1000, 1023, 1024, 5000, 100_000])
def test_a_long_name_is_cut_and_stays_one_name(tmp_path, size):
    answer = odd(tmp_path, "long", size)
    (found,) = [o for o in answer["operations"] if o["name"].startswith("xxx")]
    assert found["count"] == 2
    assert len(found["name"].encode()) <= 1024
    cut = found["name"].endswith("…")
    assert cut == (size > 1020) and answer["summary"]["texts_cut"] == cut
    assert any("were cut" in note for note in answer["notes"]) == cut
