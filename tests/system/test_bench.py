"""`sonde bench` times commands."""

import json
import os
import signal
import subprocess
import time

import pytest
from sonde_test import SONDE, environment, sonde
from terminal import Terminal


def bench(*arguments, **more):
    return json.loads(sonde("bench", "--json", *arguments, **more).stdout)


def test_it_measures_what_it_says(tmp_path):
    start = time.monotonic()
    answer = bench("-n", 8, "-w", 2, "sh", "-c", "echo x >> log; sleep 0.05", cwd=tmp_path)
    took = time.monotonic() - start
    assert answer["schema"] == "sonde.bench/1"
    assert (answer["runs"], answer["warmup"]) == (8, 2)
    assert (tmp_path / "log").read_text() == "x\n" * 10
    wall = answer["wall_s"]
    assert 0.05 <= wall["min"] <= wall["median"] <= wall["p95"] <= wall["max"]
    assert wall["ci95_low"] <= wall["mean"] <= wall["ci95_high"]
    values = answer["values"]["wall_s"]
    assert len(values) == 8
    assert abs(sum(values) / 8 - wall["mean"]) < 1e-9
    assert sum(values) <= took  # the runs are inside the command, however slow the machine
    assert answer["user_s"]["mean"] < wall["mean"]


def test_cpu_time_and_memory_are_the_commands(tmp_path):
    script = "x = bytearray(64 << 20)\nimport time\nwhile time.process_time() < 0.2: pass"
    answer = bench("-n", 2, "-w", 0, "/usr/bin/python3", "-c", script)
    assert 0.18 < answer["user_s"]["mean"] + answer["system_s"]["mean"] < 2
    assert 64 < answer["max_rss_mb"]["mean"] < 200


def test_text_names_every_number(tmp_path):
    text = sonde("bench", "-n", 3, "--name", "nap", "sleep", "0.02").stdout
    for word in ("nap", "3 runs", "wall", "±", "min", "median", "p95", "max", "95 %", "memory"):
        assert word in text, word


def test_output_is_discarded_unless_wanted(tmp_path):
    command = ["-n", "2", "-w", "0", "sh", "-c", "echo seen; cat"]
    assert "seen" not in sonde("bench", "--name", "x", *command).stdout
    shown = sonde("bench", "--name", "x", "--show-output", *command, stdin=subprocess.DEVNULL)
    assert shown.stdout.count("seen") == 2


def test_a_failing_command_ends_the_series_with_its_status():
    done = sonde("bench", "sh", "-c", "exit 7", check=False)
    assert done.returncode == 7
    assert "status 7" in done.stderr
    done = sonde("bench", "sh", "-c", "kill -KILL $$", check=False)
    assert done.returncode == 137


def test_failures_can_be_measured():
    answer = bench("-n", 3, "--ignore-failure", "sh", "-c", "exit 7")
    assert (answer["runs"], answer["failures"]) == (3, 3)


@pytest.mark.parametrize("arguments", [[], ["-n", "0", "true"], ["-n", "x", "true"], ["no-such"]])
def test_wrong_usage_is_2(arguments):
    done = sonde("bench", *arguments, check=False)
    assert done.returncode == 2 and done.stderr


def test_secrets_are_not_shown():
    answer = bench("-n", 1, "true", "--api-key=hunter2-Zx81")
    assert "hunter2" not in json.dumps(answer)


def test_ctrl_c_reports_what_was_measured(tmp_path):
    env = environment(TERM="dumb")
    with Terminal([SONDE, "bench", "-n", "1000", "sleep", "0.1"], tmp_path, env) as terminal:
        terminal.expect("run 3 of 1000")
        terminal.type("\x03")
        status = terminal.wait()
        assert os.WTERMSIG(status) == signal.SIGINT
        terminal.expect(r"(2|3) runs after 1 warm-up · interrupted")
        terminal.expect("95 %")


def test_a_signal_to_us_ends_the_command_too():
    process = subprocess.Popen([SONDE, "bench", "sleep", "30"], env=environment(),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(0.3)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=25)  # it would sleep for 30
    assert process.returncode < 0
