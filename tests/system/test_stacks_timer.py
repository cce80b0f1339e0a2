# labels: no_asan
# timeout: 600
"""Native stacks by timers inside the program, for where perf_event is forbidden."""

import json
import shutil
import signal
import subprocess
import time

import pytest
from sonde_test import SONDE, SOURCE, environment, program, report, run, sonde, wait_for_cpu

RATE = 249  # timers of CPU time are looked at in every tick of the kernel, mostly 250 Hz
SECONDS = 10  # 2,490 samples: 60 % is known to about a point
POINTS = 0.04
SOURCE_OF_WORK = SOURCE / "tests/system/progs/hot_work.h"


def line_of(mark):
    for number, line in enumerate(SOURCE_OF_WORK.read_text().splitlines(), 1):
        if f"LINE {mark} " in line:
            return number
    raise AssertionError(f"no line marked {mark}")


def sampled(tmp_path, *command, name="run", options=(), check=True, rate=RATE):
    return run(
        tmp_path / name,
        *command,
        options=("--rate", rate, *options),
        env=environment(SONDE_STACKS="timer"),
        check=check,
    )


def shares(answer, key="share"):
    found = {}
    for function in answer["functions"]:
        found[function["name"]] = found.get(function["name"], 0) + function[key]
    return found


def check_method(answer):
    row = [p for p in answer["provenance"] if p["metric"] == "functions"][0]
    assert row["status"] == "measured"
    assert row["method"].startswith("timers on the CPU time of every thread")


def check_total(answer, part=0.05):
    used = answer["summary"]["cpu_percent_avg"] / 100 * answer["run"]["duration_s"]
    assert answer["sampling"]["cpu_s"] == pytest.approx(used, rel=part, abs=0.01)


def check_shares(answer, truth):
    """Against the shares of CPU time that the program knows, also where threads compete."""
    found, whole = shares(answer, "total_share"), sum(truth.values())
    for name, seconds in truth.items():
        assert found[name] == pytest.approx(seconds / whole, abs=POINTS), name
    hot = answer["lines"][0]
    assert hot["function"] == "hot_sixty" and hot["line"] == line_of(60)


@pytest.mark.parametrize(
    "command",
    [
        ["hot_plain", SECONDS],
        ["hot_plain", SECONDS, "threads"],
        ["hot_plain", SECONDS, "fork"],
        ["hot_pointers", SECONDS],
        ["hot_loader", SECONDS, program("hot_plugin.so")],
    ],
    ids=lambda c: " ".join(map(str, c[:1] + c[2:])).replace("/", "_"),
)
def test_shares_and_lines_are_those_of_the_program(tmp_path, command):
    done = sampled(tmp_path, program(command[0]), *command[1:])
    answer = done.report()
    check_method(answer)
    check_shares(answer, json.loads(done.stdout))
    check_total(answer)
    assert answer["sampling"]["lost"] == 0


def test_callers_and_threads(tmp_path):
    answer = sampled(tmp_path, program("hot_plain"), 2, "threads").report()
    total = shares(answer, "total_share")
    assert total["hot_work"] > 0.95 and total["hot_round"] > 0.95
    assert not any("sonde" in name for name in total), "we are not in their stacks"
    text = subprocess.run(
        [SONDE, "export", tmp_path / "run", "--format", "folded", "-o", "-"],
        capture_output=True, text=True, check=True, env=environment(),
    ).stdout
    assert ";hot-a;" in text and ";hot-b;" in text


def test_waiting_is_not_sampled(tmp_path):
    done = sampled(tmp_path, program("hot_plain"), 1, "idle")
    answer = done.report()
    truth = json.loads(done.stdout)
    assert answer["sampling"]["cpu_s"] == pytest.approx(sum(truth.values()), rel=0.1)


@pytest.mark.parametrize("how", ["own", "reset", "altstack", "wait", "threads", "take"])
def test_programs_with_signals_of_their_own_run_unchanged(tmp_path, how):
    """Handlers of real-time signals, SIGPROF, all signals blocked and waited for, signal
    stacks of 8 KiB, threads by the thousand."""
    plain = subprocess.run(
        [program("timer_signals"), how], capture_output=True, text=True, timeout=60
    )
    done = sampled(tmp_path, program("timer_signals"), how, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (3, plain.stdout, plain.stderr)
    assert plain.returncode == 3
    answer = done.report()
    check_method(answer)
    if how == "take":  # until it took our signal
        assert answer["sampling"]["coverage"] < 0.9
        assert any("signal of the timers" in note for note in notes(tmp_path / "run"))
    elif how != "threads":  # of a few instructions each
        check_total(answer, 0.1)


def notes(directory):
    return json.dumps(json.loads((directory / "run.json").read_text())).split('"')


def test_who_sends_the_signal_ends_the_program_as_before(tmp_path):
    done = sampled(tmp_path, program("timer_signals"), "send", check=False)
    assert done.returncode == -(signal.SIGRTMAX - 1)


def test_chain_of_programs(tmp_path):
    done = sampled(tmp_path, program("timer_signals"), "exec", 4, check=False)
    assert done.returncode == 5
    assert done.stdout == "".join(f"exec {n}\n" for n in (4, 3, 2, 1, 0))
    answer = done.report()
    check_total(answer, 0.1)
    assert shares(answer)["hot_sixty"] > 0.4


def test_a_static_program_is_untouched_and_not_sampled(tmp_path):
    done = sampled(tmp_path, program("hot_static"), 0.5)
    assert sum(json.loads(done.stdout).values()) > 0.4
    answer = done.report()
    assert answer["functions"] == [] and answer["sampling"]["samples"] == 0
    row = [p for p in answer["provenance"] if p["metric"] == "functions"][0]
    assert row["status"] == "unavailable" and "statically" in row["method"]


@pytest.mark.parametrize("kind", ["prctl", "syscall"])
def test_a_sealed_program_gets_no_system_call_from_us(tmp_path, kind):
    plain = subprocess.run([program("alloc_sealed"), kind], capture_output=True, text=True)
    done = sampled(tmp_path, program("alloc_sealed"), kind, check=False, rate=999)
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout)


def test_rings_are_gone_afterwards_and_little_room_is_no_harm(tmp_path):
    sampled(tmp_path, "sh", "-c", f"for i in 1 2 3; do {program('hot_plain')} 0.1; done")
    assert not list((tmp_path / "run").glob("timer-*"))
    done = sampled(
        tmp_path, program("hot_plain"), 0.3, name="small", options=("--max-trace", "2MiB")
    )
    assert done.returncode == 0


def test_samples_survive_a_kill(tmp_path):
    used = "$(cut -d' ' -f14 /proc/$!/stat)"  # ticks of CPU time, mostly of 10 ms
    script = (f"{program('hot_plain')} 200 & while [ {used} -lt 70 ]; do sleep 0.1; done; "
              "kill -9 $!; exit 4")
    done = sampled(tmp_path, "sh", "-c", script, check=False)
    assert done.returncode == 4
    answer = done.report()
    assert shares(answer)["hot_sixty"] > 0.4
    assert answer["sampling"]["samples"] > 50


def test_a_killed_supervisor_leaves_the_program_alone(tmp_path):
    out, env = tmp_path / "out", environment(SONDE_DIR=tmp_path / "store")
    with open(out, "w") as stdout:
        supervisor = subprocess.Popen(
            [SONDE, "run", "-q", "--rate", "999", "--", program("hot_plain"), "2", "threads"],
            env={**env, "SONDE_STACKS": "timer"},
            stdout=stdout,
        )
    wait_for_cpu(supervisor, 0.7)
    supervisor.send_signal(signal.SIGKILL)
    supervisor.wait()
    for _ in range(150):
        listed = sonde("report", "@last", "--json", env=env, check=False)
        if listed.returncode == 0 and json.loads(listed.stdout)["run"]["exit"]["cause"]:
            break
        time.sleep(0.2)
    assert sum(json.loads(out.read_text()).values()) > 1.5
    assert shares(json.loads(listed.stdout))["hot_sixty"] > 0.3, "adopted, and named"
    assert not list((tmp_path / "store").rglob("timer-*"))


def test_rate_zero_arms_nothing(tmp_path):
    done = run(
        tmp_path / "run", "sh", "-c", "echo ${SONDE_TIMER_HZ-none}",
        options=("--rate", 0), env=environment(SONDE_STACKS="timer", SONDE_TIMER_HZ=99),
    )
    assert done.stdout == "none\n"


def test_python_with_its_handlers(tmp_path):
    python = shutil.which("python3")
    script = (
        "import signal, time, threading, multiprocessing\n"
        "n = [0]\n"
        "signal.signal(signal.SIGRTMAX - 1, lambda *a: n.__setitem__(0, n[0] + 1))\n"
        "end = time.process_time() + 0.3\n"
        "while time.process_time() < end: sum(range(1000))\n"
        "assert n[0] == 0, n\n"
        "signal.raise_signal(signal.SIGRTMAX - 1)\n"
        "p = multiprocessing.Process(target=sum, args=(range(10**6),))\n"
        "p.start(); p.join()\n"
        "print(n[0], p.exitcode)\n"
    )
    done = sampled(tmp_path, python, "-c", script, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1 0\n", "")


def test_where_perf_is_forbidden_it_happens_by_itself(tmp_path):
    done = subprocess.run(
        [program("no_perf"), SONDE, "run", "-q", "-o", tmp_path / "run", "--"]
        + [program("hot_plain"), "1"],
        env=environment(), capture_output=True, text=True, timeout=60,
    )
    if done.returncode == 77:
        pytest.skip("no seccomp here")
    answer = report(tmp_path / "run")
    check_method(answer)
    assert shares(answer)["hot_sixty"] > 0.4
