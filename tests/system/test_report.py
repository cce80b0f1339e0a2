"""Reports, exports and listings of real runs, read by other people's parsers."""

import csv
import io
import json
import os
import pty
import re
import signal
import stat
import subprocess
import time
from collections import defaultdict
from pathlib import Path

import pytest
from sonde_test import (
    SONDE,
    assert_consistent,
    environment,
    operation,
    program,
    report,
    sonde,
    traces,
    workload,
)

HOSTILE = ["=cmd|'/C calc'!A0", "\x1b]0;owned\x07\x1b[2J", 'quote"comma,newline\n']

# DESIGN §8, key by key.
CONTRACT = {
    "": "schema run hardware environment summary phases processes ranks epochs operations "
    "functions lines allocations io gpu energy cost monitors bottlenecks recommendations "
    "provenance",
    "run": "id name command started duration_s exit tags params metrics rank world_size",
    "run.exit": "code signal cause",
    "environment": "git argv python torch cuda driver",
    "summary": "verdict bound_by step_ms optimizer_steps steps_per_s samples_per_s "
    "data_wait_share gpu_busy_share cpu_percent_avg peak_rss_mb overhead_percent "
    "overhead_mb events lost",
    "summary.step_ms": "count mean std min max p50 p95 p99",
    "phases[]": "phase total_s share count device_s mem_peak_mb gpu_mem_peak_mb",
    "processes[]": "pid role rank phases cpu_s peak_rss_mb",
    "operations[]": "name path component category phase file line tags count calls_per_s "
    "total_s self_s mean_ms std_ms min_ms max_ms p50_ms p95_ms p99_ms start_s end_s cpu_s "
    "mem_before_mb mem_after_mb mem_peak_mb gpu_mem_before_mb gpu_mem_after_mb "
    "gpu_mem_peak_mb gpu_util_percent custom",
    "allocations": "count bytes peak_bytes sites",
    "io": "files coverage",
    "energy": "joules co2e_g source",
    "provenance[]": "metric status method resolution",
}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store with one good run of the zoo."""
    place = tmp_path_factory.mktemp("store")
    sonde("run", "--quiet", "--name", "good", "--tag", "team=flag", "--tag", "a=b", "--",
          program("zoo"), "good", cwd=place)
    return place


def directory_of(store):
    (found,) = (store / ".sonde" / "runs").iterdir()
    return found


@pytest.fixture(scope="module")
def answer(store):
    return report(directory_of(store))


def at(document, path):
    """Every object the path leads to: "phases[]" is each element."""
    found = [document]
    for part in filter(None, path.split(".")):
        name = part.removesuffix("[]")
        found = [o[name] for o in found]
        if part.endswith("[]"):
            found = [e for array in found for e in array]
    return found


# ---- JSON ----------------------------------------------------------------------------


@pytest.mark.parametrize("place", CONTRACT)
def test_every_key_of_the_contract_is_there(answer, place):
    objects = at(answer, place)
    assert objects
    for o in objects:
        assert set(CONTRACT[place].split()) <= set(o)


def traced(answer):
    """Processes that recorded; monitors see others too (a sanitizer's helper)."""
    return [p for p in answer["processes"] if p["phases"] is not None]


def test_sums_hold(answer):
    assert_consistent(answer)
    for process in traced(answer):
        assert sum(p["share"] for p in process["phases"]) == pytest.approx(1, abs=1e-9)
    assert sum(p["share"] for p in answer["phases"]) == pytest.approx(1, abs=1e-9)


def test_the_zoo_is_counted_as_it_is(answer):
    assert operation(answer, "train", "forward", "layer")["count"] == 40
    assert operation(answer, "train", "load")["count"] == 20
    assert operation(answer, "decode")["count"] == 50
    assert operation(answer, "in child")["count"] == 30
    decode = operation(answer, "decode")
    assert (decode["component"], decode["category"]) == ("loader", "io")
    assert decode["tags"] == {"kind": "jpeg"}
    assert decode["phase"] == "preprocessing"
    assert decode["file"].endswith("zoo.c") and decode["line"] > 0
    assert operation(answer, "train", "load")["custom"]["batch"]["sum"] == 160
    assert answer["run"]["metrics"]["loss"] == pytest.approx(0.05)
    assert answer["run"]["tags"] == {"team": "program", "a": "b"}
    assert answer["run"]["params"] == {"depth": "12"}
    assert answer["counters"]["queue"]["max"] == 3


def test_an_operation_has_what_a_plain_zone_has_not(answer):
    op = operation(answer, "experiment")
    assert 0 < op["cpu_s"] < 0.1  # the spin is wall time: a busy machine gives less CPU
    assert op["mem_peak_mb"] >= op["mem_before_mb"] > 0
    assert op["custom"]["accuracy"]["last"] == 0.93
    assert operation(answer, "train")["cpu_s"] is None


def test_phases_are_the_main_thread_s_alone(answer):
    phases = {p["phase"]: p for p in answer["phases"]}
    assert "preprocessing" not in phases and "augmentation" not in phases
    assert phases["forward"]["count"] == 20
    assert phases["forward"]["total_s"] == pytest.approx(
        operation(answer, "train", "forward")["total_s"], rel=1e-6)
    assert answer["summary"]["data_wait_share"] == phases["data_loading"]["share"]


def test_steps(answer):
    summary = answer["summary"]
    assert summary["step_ms"]["count"] == 19
    assert summary["samples_per_s"] == pytest.approx(8 * summary["steps_per_s"])
    assert answer["steps"]["count"] == 19
    assert len(answer["steps"]["points"]) == 19


def test_spans_have_their_suspended_time_apart(answer):
    span = operation(answer, "request")
    assert (span["kind"], span["count"], span["open"]) == ("span", 1, 1)
    assert 0.0005 <= span["suspended_s"] <= span["total_s"]


def test_processes_are_listed_with_one_main(answer):
    (main,) = [p for p in traced(answer) if p["main"]]
    (child,) = [p for p in traced(answer) if not p["main"]]
    assert child["ppid"] == main["pid"]
    assert main["threads"] == 2


def test_provenance_is_one_of_three_words(answer):
    words = {p["status"] for p in answer["provenance"]}
    assert words <= {"measured", "modelled", "unavailable"}
    missing = {p["metric"] for p in answer["provenance"] if p["status"] == "unavailable"}
    assert {"gpu", "cost"} <= missing
    assert "overhead_percent" not in missing
    assert 0 < answer["summary"]["overhead_percent"] < 50


# ---- CSV -----------------------------------------------------------------------------


def test_csv_says_what_json_says(store, answer):
    done = sonde("report", directory_of(store), "--format", "csv").stdout
    rows = list(csv.DictReader(io.StringIO(done, newline=""), strict=True))
    assert len(rows) == len(answer["operations"])
    for row, op in zip(rows, answer["operations"], strict=True):
        assert int(row["count"]) == op["count"]
        assert float(row["total_s"]) == pytest.approx(op["total_s"], rel=1e-6)
        assert row["phase"] == (op["phase"] or "")
        assert row["path"].count(" › ") == len(op["path"]) - 1


def test_csv_carries_no_formula_and_no_escape(store):
    done = sonde("export", "--format", "csv", directory_of(store)).stdout
    assert "\x1b" not in done and "\x07" not in done
    for row in csv.DictReader(io.StringIO(done, newline="")):
        for column in ("name", "path", "component", "category", "file", "tags"):
            assert row[column][:1] not in ("=", "+", "-", "@", "\t", "\r")


# ---- Text ----------------------------------------------------------------------------


@pytest.mark.parametrize("width", [60, 80, 100, 140, 200])
@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_text_keeps_to_width_screen_and_alphabet(store, width, locale):
    env = environment(COLUMNS=width, LC_ALL=locale)
    text = sonde("report", "@0", cwd=store, env=env).stdout
    lines = text.splitlines()
    assert len(lines) <= 46
    assert max(map(len, lines)) <= width
    assert "\x1b" not in text and "\x07" not in text
    assert "train" in text and "forward" in text
    if locale == "C":
        assert text.isascii()
    else:
        assert "█" in text


def test_full_text_shows_everything_and_obeys_nothing(store, answer):
    text = sonde("report", "@0", "--full", cwd=store, env=environment(LC_ALL="C.UTF-8")).stdout
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\x80-\x9f‮]", text)
    for op in answer["operations"]:
        if op["name"].isalnum():
            assert op["name"] in text
    for word in ("PROVENANCE", "COMPONENTS", "evolution", "accuracy", "queue", "batch"):
        assert word in text


def on_a_terminal(arguments, cwd, **env):
    ours, theirs = pty.openpty()
    done = subprocess.Popen([SONDE, *arguments], cwd=cwd, stdout=theirs, stderr=theirs,
                            env=environment(TERM="xterm", **env))
    os.close(theirs)
    text = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:
            break
        if not part:
            break
        text += part
    os.close(ours)
    assert done.wait() == 0
    return text.decode()


def test_colour_on_a_terminal_unless_told_otherwise(store):
    assert "\x1b[1mVERDICT" in on_a_terminal(["report"], store)
    assert "\x1b" not in on_a_terminal(["report"], store, NO_COLOR="1")
    assert "\x1b" not in on_a_terminal(["report", "--no-color"], store)


def test_thresholds_sum_up_what_they_hide(store, answer):
    some = json.loads(
        sonde("report", "@0", "--json", "--min-time", "5ms", "--depth", "2", cwd=store).stdout)
    for op in some["operations"]:
        assert op["total_s"] >= 0.005 and len(op["path"]) <= 2
    hidden = len(answer["operations"]) - len(some["operations"])
    assert some["operations_left_out"]["count"] == hidden > 0
    text = sonde("report", "@0", "--min-time", "5ms", cwd=store).stdout
    assert "smaller path" in text


# ---- Chrome --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chrome(store):
    path = store / "trace.json"
    sonde("export", "--format", "chrome", "-o", path, directory_of(store))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    return json.loads(path.read_bytes())


def zones(chrome):
    return [e for e in chrome["traceEvents"] if e["ph"] == "X"]


def test_the_timeline_has_every_zone_the_statistics_count(chrome, answer):
    counts, times = defaultdict(int), defaultdict(float)
    for e in zones(chrome):
        counts[e["name"]] += 1
        times[e["name"]] += e["dur"] / 1e6
    for op in answer["operations"]:
        if op["kind"] != "zone":
            continue
        assert counts.pop(op["name"]) == op["count"]
        assert times[op["name"]] == pytest.approx(op["total_s"], rel=1e-3, abs=1e-7)
    assert not counts


def test_zones_of_a_thread_are_nested(chrome):
    threads = defaultdict(list)
    for e in zones(chrome):
        start = round(e["ts"] * 1000)
        threads[e["pid"], e["tid"]].append((start, start + round(e["dur"] * 1000), e["name"]))
    assert len(threads) == 3
    for events in threads.values():
        stack = []
        for start, end, name in sorted(events, key=lambda e: (e[0], -e[1])):
            while stack and stack[-1][1] <= start:
                stack.pop()
            if stack:
                assert end <= stack[-1][1], f"{name} reaches out of {stack[-1][2]}"
            stack.append((start, end, name))


def test_counters_marks_steps_spans_and_names(chrome):
    by_phase = defaultdict(list)
    for e in chrome["traceEvents"]:
        by_phase[e["ph"]].append(e)
    assert sum(e["name"] == "queue" for e in by_phase["C"]) == 20
    assert sum(e["name"] == "step" for e in by_phase["i"]) == 20
    assert any(e["name"] == "epoch 1" for e in by_phase["i"])
    ids = [e["id2"]["local"] for e in by_phase["b"]]
    assert len(ids) == 2 and sorted(ids) == sorted(e["id2"]["local"] for e in by_phase["e"])
    assert any(e.get("args", {}).get("truncated") for e in by_phase["b"])
    names = {e["args"]["name"] for e in by_phase["M"]}
    assert "loader" in names
    assert chrome["displayTimeUnit"] == "ns"


def test_hostile_names_come_through_unharmed(chrome):
    names = {e["name"] for e in zones(chrome)}
    assert set(HOSTILE) <= names


def test_json_lines(store, answer):
    done = sonde("export", "--format", "jsonl", "-o", "-", directory_of(store)).stdout
    lines = [json.loads(line) for line in done.splitlines()]
    expected = sum(o["count"] for o in answer["operations"] if o["kind"] == "zone")
    assert len(lines) == expected
    assert {"name", "start_s", "duration_ms", "pid", "tid", "depth"} <= set(lines[0])


# ---- Files ---------------------------------------------------------------------------


def test_output_files_are_whole_and_private(store, tmp_path):
    target = tmp_path / "r.json"
    target.write_text("old")
    target.chmod(0o644)
    sonde("report", "@0", "--json", "-o", target, cwd=store)
    assert json.loads(target.read_text())["schema"] == "sonde.report/1"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["r.json"]
    assert sonde("report", "@0", "--json", "-o", "/dev/stdout", cwd=store).stdout[0] == "{"


def test_an_output_that_cannot_be_is_an_error_with_a_remedy(store, tmp_path):
    done = sonde("report", "@0", "-o", tmp_path / "no" / "x", cwd=store, check=False)
    assert done.returncode == 2
    assert "cannot write" in done.stderr and "-o" in done.stderr
    with open("/dev/full", "w") as full:
        done = subprocess.run([SONDE, "report", "@0", "--json"], cwd=store, stdout=full,
                              stderr=subprocess.PIPE, env=environment())
    assert done.returncode == 2 and b"no space left" in done.stderr


def test_a_reader_that_stops_reading_is_no_error(store):
    done = subprocess.run(f"'{SONDE}' export -o - @0 | head -c 10 >/dev/null; echo ${{PIPESTATUS[0]}}",
                          shell=True, executable="/bin/bash", cwd=store, text=True,
                          capture_output=True, env=environment())
    assert done.stdout.strip() in ("0", "141")
    assert "cannot" not in done.stderr


# ---- Which run -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    place = tmp_path_factory.mktemp("three")
    for name in ("first", "twin", "twin"):
        sonde("run", "--quiet", "--name", name, "--", "true", cwd=place)
        time.sleep(0.01)
    return place, [r["id"] for r in json.loads(sonde("list", "--json", cwd=place).stdout)]


def test_every_reference_finds_its_run(three):
    place, ids = three
    for ref, expected in [((), 0), (("@last",), 0), (("@0",), 0), (("@1",), 1), (("@2",), 2),
                          (("first",), 2), (("twin",), 0), ((ids[1],), 1),
                          ((f".sonde/runs/{ids[2]}",), 2), ((place / ".sonde/runs" / ids[1],), 1)]:
        done = sonde("show", "--json", *ref, cwd=place)
        assert json.loads(done.stdout)["id"] == ids[expected], ref
    assert "2 runs are called 'twin'" in sonde("show", "twin", cwd=place).stderr
    unique = next(i for i in ids if sum(j.startswith(i[:7]) for j in ids) == 1)
    assert json.loads(sonde("show", "--json", unique[:7], cwd=place).stdout)["id"] == unique


@pytest.mark.parametrize("verb", ["report", "show", "export"])
@pytest.mark.parametrize(
    "ref, words", [("@9", "has 3"), ("nosuch", "sonde list"), ("./nowhere", "no run directory"),
                   ("@x", "@last"), ("", "empty")])
def test_a_reference_that_finds_nothing_says_what_to_do(three, verb, ref, words):
    done = sonde(verb, ref, cwd=three[0], check=False)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stdout == ""


def test_without_any_run_the_first_step_is_named(tmp_path):
    for verb in ("report", "show", "export"):
        done = sonde(verb, cwd=tmp_path, check=False)
        assert done.returncode == 2 and "sonde run -- " in done.stderr
    done = sonde("list", cwd=tmp_path)
    assert "sonde run -- " in done.stderr and done.stdout == ""
    assert json.loads(sonde("list", "--json", cwd=tmp_path).stdout) == []
    assert list(tmp_path.iterdir()) == []


def test_a_single_trace_is_a_run_too(store, answer):
    for trace in traces(directory_of(store)):
        one = report(trace)
        assert len(one["processes"]) == 1
        assert one["run"]["id"] == answer["run"]["id"]


def test_list_is_newest_first_and_can_be_cut(three):
    place, ids = three
    text = sonde("list", cwd=place).stdout.splitlines()
    assert [line.split()[0] for line in text[1:]] == ids
    assert len(json.loads(sonde("list", "--json", "-n", 1, cwd=place).stdout)) == 1
    assert "2 more" in sonde("list", "-n", 1, cwd=place).stdout
    rows = json.loads(sonde("list", "--json", cwd=place).stdout)
    assert rows[0]["name"] == "twin" and rows[0]["exit"]["code"] == 0
    assert rows[0]["command"] == ["true"] and rows[0]["running"] is False


def test_usage_errors(three):
    for words in (["report", "--format", "xml"], ["report", "a", "b"], ["export", "-f", "xml"],
                  ["list", "x"], ["report", "--min-time", "5"], ["show", "--nonsense"]):
        done = sonde(*words, cwd=three[0], check=False)
        assert done.returncode == 2, words
        assert "--help" in done.stderr


def test_show_tells_files_clock_and_losses(store):
    shown = json.loads(sonde("show", "--json", cwd=store).stdout)
    assert shown["clock"]["readings"] >= 2 and shown["clock"]["error_ns"] > 0
    assert {t["file"] for t in shown["traces"]} == {t.name for t in traces(directory_of(store))}
    assert all(t["disk_bytes"] > 0 for t in shown["traces"])
    assert shown["lost"] == 0 and shown["space"]["used_bytes"] > 0
    text = sonde("show", cwd=store).stdout
    assert "error at most" in text and "0 lost" in text and "zoo" in text


# ---- Death ---------------------------------------------------------------------------


@pytest.fixture
def hanging(tmp_path):
    """A run whose program waits inside train › epoch › stuck."""
    run = subprocess.Popen([SONDE, "run", "--quiet", "--", program("zoo"), "hang"], cwd=tmp_path,
                           stdout=subprocess.PIPE, text=True, env=environment())
    assert run.stdout.readline() == "ready\n"
    yield tmp_path, run
    if run.poll() is None:
        run.kill()
    run.wait()
    for text in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if text.read_bytes() == f"{program('zoo')}\0hang\0".encode() and \
               os.readlink(text.parent / "cwd") == str(tmp_path):
                os.kill(int(text.parent.name), signal.SIGKILL)
        except OSError:
            pass
    run.stdout.close()


def program_pid(place):
    """Known a moment after the program has started."""
    for _ in range(200):
        pid = json.loads((directory_of(place) / "run.json").read_text())["pid"]
        if pid:
            return pid
        time.sleep(0.01)
    raise AssertionError("run.json never named the program")


def test_a_live_run_is_shown_as_it_is(hanging):
    place, _ = hanging
    (row,) = json.loads(sonde("list", "--json", cwd=place).stdout)
    assert row["running"] and row["exit"]["code"] is None
    assert "running" in sonde("list", cwd=place).stdout
    env = environment(LC_ALL="C.UTF-8")
    text = sonde("report", cwd=place, env=env).stdout
    assert "NOW" in text and "train › epoch › stuck" in text and "(open)" in text
    answer = report(directory_of(place))
    assert answer["run"]["state"] == "running"
    assert operation(answer, "train", "epoch", "stuck")["open"] == 1
    assert_consistent(answer)


def test_a_killed_program_is_explained(hanging):
    place, run = hanging
    os.kill(program_pid(place), signal.SIGKILL)
    run.wait(timeout=120)
    text = sonde("report", cwd=place, env=environment(LC_ALL="C.UTF-8")).stdout
    assert "KILLED by SIGKILL" in text
    assert "DEATH" in text and "train › epoch › stuck" in text and "last step 2" in text
    answer = report(directory_of(place))
    assert answer["run"]["exit"] == {"code": None, "signal": "SIGKILL", "cause": "signal"}
    (thread,) = answer["open_zones"]
    assert [z["name"] for z in thread["zones"]] == ["train", "epoch", "stuck"]
    assert thread["zones"][0]["open_s"] >= thread["zones"][2]["open_s"] > 0
    assert operation(answer, "train", "epoch", "stuck")["truncated"] == 1
    assert answer["summary"]["last_step"] == 2


def test_a_killed_supervisor_and_program_are_explained_by_the_next_command(hanging):
    place, run = hanging
    pid = program_pid(place)
    run.kill()
    os.kill(pid, signal.SIGKILL)
    run.wait()
    time.sleep(0.1)
    text = sonde("report", cwd=place, env=environment(LC_ALL="C.UTF-8")).stdout
    assert "ENDED UNSEEN" in text and "train › epoch › stuck" in text
    assert "unknown" in sonde("list", cwd=place).stdout


def test_an_exit_inside_a_zone_is_explained(tmp_path):
    done = sonde("run", "--", program("zoo"), "exit", cwd=tmp_path, check=False,
                 env=environment(LC_ALL="C.UTF-8"))
    assert done.returncode == 3
    assert "FAILED with exit 3" in done.stderr and "train › save" in done.stderr


# ---- Damage --------------------------------------------------------------------------


def copy_of(store, tmp_path):
    source = directory_of(store)
    target = tmp_path / "copy"
    target.mkdir()
    for p in source.iterdir():
        (target / p.name).write_bytes(p.read_bytes())
    return target


@pytest.mark.parametrize("keep", [0, 1, 100, 4096, 65536, 200_000])
def test_a_shortened_trace_is_noted_and_the_rest_reported(store, tmp_path, keep):
    run = copy_of(store, tmp_path)
    victim = max(traces(run), key=lambda p: p.stat().st_size)
    os.truncate(victim, min(keep, victim.stat().st_size))
    answer = report(run)
    assert_consistent(answer)
    for form in ("text", "csv"):
        sonde("report", run, "--format", form)
    json.loads(sonde("export", run, "-o", "-").stdout)


def test_rubbish_in_the_directory_does_no_harm(store, tmp_path):
    run = copy_of(store, tmp_path)
    (run / "run.json").write_text("{]")
    (run / "control.sonde").write_bytes(os.urandom(10_000))
    (run / "1-2-3.sonde").write_bytes(os.urandom(300_000))
    os.mkfifo(run / "1-2-4.sonde")
    answer = report(run)
    assert operation(answer, "train", "load")["count"] == 20
    assert answer["run"]["exit"]["code"] is None
    notes = " ".join(answer["notes"])
    assert "run.json" in notes and "control.sonde" in notes and "1-2-3.sonde" in notes
    assert answer["summary"]["unreadable_traces"] == 1


# ---- The same whenever it is made -----------------------------------------------------


def assert_one_report(directory):
    made = [sonde("report", directory, "--json").stdout for _ in range(4)]
    assert len(set(made)) == 1
    return json.loads(made[0])


def test_a_run_has_one_report(tmp_path):
    """The rate of the clock is the run's: the present must not move the last digits."""
    sonde("run", "-q", "-o", tmp_path / "run", "--", workload("known_times"))
    assert assert_one_report(tmp_path / "run")["run"]["duration_s"] > 0.5


def test_a_short_run_has_one_report_too(tmp_path):
    """Its two readings of the clock are close together: they must do, once it is over."""
    sonde("run", "-q", "-o", tmp_path / "run", "--", program("steady"), 20, 1000)
    answer = assert_one_report(tmp_path / "run")
    times = {o["name"]: o["mean_ms"] for o in answer["operations"]}
    assert times["step"] >= 0.999  # it sleeps a millisecond in each
