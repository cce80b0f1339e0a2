# labels: no_asan
"""`sonde report --measure`: a trial says what a cure will bring before it is written. The
program knows the truth: it can be run cured."""
# timeout: 1200

import json
import os
import pty
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from sonde_test import SONDE, SOURCE, environment

PYTHON = "/usr/bin/python3"
PROGRAM = SOURCE / "tests" / "system" / "progs" / "trial_truth.py"


def has_torch():
    test = subprocess.run([PYTHON, "-c", "import torch"], capture_output=True, check=False)
    return test.returncode == 0


pytestmark = [
    pytest.mark.skipif(not has_torch(), reason="no torch for " + PYTHON),
    pytest.mark.flaky(reruns=2),  # times of programs, beside other tests
]


class Made:
    """A run of the program, and what is asked about it."""

    def __init__(self, folder, *args):
        self.folder, self.run = folder, folder / "run"
        folder.mkdir(exist_ok=True)
        # Short: multiprocessing's sockets are in there, and their paths have 107 bytes.
        self.scratch = Path(tempfile.mkdtemp(prefix="t", dir="/tmp"))
        self.env = environment(
            SONDE_DIR=folder / "store", TMPDIR=self.scratch, OMP_NUM_THREADS=1
        )
        done = subprocess.run(
            [SONDE, "run", "-q", "-o", self.run, "--", PYTHON, PROGRAM, *args],
            cwd=folder, env=self.env, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    def ask(self, *words):
        return subprocess.run(
            [SONDE, "report", self.run, *words],
            env=self.env, capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip

    def measured(self, asked, *more):
        done = self.ask("--json", "--measure", "--what-if", asked, *more)
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)["what_if"][0]
        assert answer["trial"], done.stderr
        return answer["trial"]

    def mean_ms(self):
        return json.loads(self.ask("--json").stdout)["account"]["mean_ms"]

    def loop_s(self):
        account = json.loads(self.ask("--json").stdout)["account"]
        return account["wall_s"] - account["startup_s"] - account["end_s"]

    def left(self):
        return list(self.scratch.iterdir())


@pytest.fixture
def made(tmp_path):
    all_made = []

    def make(*args):
        all_made.append(Made(tmp_path / f"m{len(all_made)}", *args))
        return all_made[-1]

    yield make
    for one in all_made:
        shutil.rmtree(one.scratch, ignore_errors=True)


def close(measured, truth):
    """A sick one is five times that. Whoever gets a tenth of a core cannot tell."""
    good = truth / 1.6 <= measured <= truth * 1.6
    load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
    if not good and load > 2 * cores:
        pytest.skip(f"load {load:.0f} on {cores} cores")
    return good


@pytest.mark.parametrize(
    "illness, asked",
    [("logging", "logging=10"), ("gc", "gc=10"), ("transform", "transform=1000")],
)
def test_a_step_takes_in_the_trial_what_it_takes_in_the_cured_program(made, illness, asked):
    sick = made(illness)
    trial = sick.measured(asked)
    truth = made(illness, "--cured").mean_ms()
    now = sick.mean_ms()
    assert close(trial["step_ms"], truth), (trial, truth, now)
    assert illness != "logging" or "write_diary" in trial["note"]
    assert trial["low_ms"] <= trial["step_ms"] <= trial["high_ms"]
    assert 30 <= trial["steps"] <= 90  # of 100
    assert not sick.left()


def test_doubles_become_floats(made):
    sick = made("precision")
    done = sick.ask("--json", "--measure")
    report = json.loads(done.stdout)
    assert report["bottlenecks"][0]["id"] == "precision_unused", done.stderr
    trial = report["bottlenecks"][0]["trial"]
    assert trial, done.stderr
    truth = made("precision", "--cured").mean_ms()
    assert close(trial["step_ms"], truth), (trial, truth, sick.mean_ms())
    assert trial["step_ms"] < 0.85 * sick.mean_ms()


def test_doubles_that_are_left_are_told_and_nothing_is_measured(made):
    sick = made("precision", "--save", "kept")
    done = sick.ask("--json", "--measure")
    report = json.loads(done.stdout)
    assert report["bottlenecks"][0]["id"] == "precision_unused"
    assert "still gives doubles" in done.stderr and "the prediction stands" in done.stderr
    assert not report["trials"]


def test_torchs_own_optimizer_takes_the_place_of_a_slow_one(made):
    sick = made("optimizer")
    done = sick.ask("--json", "--measure")
    finding = json.loads(done.stdout)["bottlenecks"][0]
    assert finding["id"] == "optimizer_bound", done.stderr
    trial = finding["trial"]
    assert trial, done.stderr
    assert "in its place: torch.optim.AdamW(" in trial["note"]
    # Half of the time that it had taken would be three times that.
    assert close(trial["step_ms"], made("optimizer", "--cured").mean_ms()), trial


def test_buffers_are_used_again(made):
    sick = made("churn")
    done = sick.ask("--json", "--measure")
    finding = json.loads(done.stdout)["bottlenecks"][0]
    assert finding["id"] == "allocation_churn", done.stderr
    assert finding["trial"], done.stderr
    step_ms = finding["trial"]["step_ms"]
    assert close(step_ms, made("churn", "--cured").mean_ms()), (step_ms, sick.mean_ms())


def test_batches_are_made_of_samples_of_one_length(made):
    sick = made("padding")
    done = sick.ask("--json", "--measure")
    report = json.loads(done.stdout)
    assert report["bottlenecks"][0]["id"] == "padding_waste", report["bottlenecks"]
    trial = report["bottlenecks"][0]["trial"]
    assert trial, done.stderr
    truth = made("padding", "--cured", "--steps", "200").mean_ms()
    assert close(trial["step_ms"], truth), (trial, truth, sick.mean_ms())
    assert trial["step_ms"] < 0.6 * sick.mean_ms()


def test_the_thread_that_has_the_lock_becomes_a_process(made):
    sick = made("lock")
    done = sick.ask("--json", "--measure")
    report = json.loads(done.stdout)
    assert report["bottlenecks"][0]["id"] == "gil_contention", report["bottlenecks"]
    trial = report["bottlenecks"][0]["trial"]
    assert trial, done.stderr
    truth = made("lock", "--cured").mean_ms()
    assert close(trial["step_ms"], truth), (trial, truth, sick.mean_ms())
    assert "watch()" in trial["note"]
    assert not sick.left()
    assert not processes_of(sick.scratch)


def test_a_thread_that_the_loop_waits_for_is_not_left_out(made):
    sick = made("lock", "--save", "waits")
    done = sick.ask("--json", "--measure")
    report = json.loads(done.stdout)
    assert report["bottlenecks"][0]["id"] == "gil_contention", report["bottlenecks"]
    assert "the loop waits for the thread of watch()" in done.stderr
    assert not report["trials"]
    assert not processes_of(sick.scratch)


def test_batches_that_the_loop_makes_are_larger(made):
    sick = made("rows", "--steps", "400")
    trial = sick.measured("batch=8")
    truth = made("rows", "--cured", "--steps", "50").loop_s()
    assert close(trial["loop_s"], truth), (trial, truth, sick.loop_s())
    assert trial["loop_s"] < 0.4 * sick.loop_s()


def test_batches_that_are_made_of_arrays_are_not_enlarged(made):
    sick = made("rows", "--save", "arrays")
    done = sick.ask("--json", "--measure", "--what-if", "batch=8")
    assert "its batches are not rows of a tensor" in done.stderr
    assert not json.loads(done.stdout)["trials"]


def on_a_terminal(sick, *words):
    """What is shown there while it runs, and what comes of it."""
    ours, theirs = pty.openpty()
    out = sick.folder / "report.json"
    child = subprocess.Popen(
        [SONDE, "report", sick.run, "-o", out, *words], env=sick.env, stderr=theirs
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            shown += os.read(ours, 4096)
        except OSError:  # the last one closed it
            break
    os.close(ours)
    assert child.wait() == 0
    return shown.decode(), json.loads(out.read_text())["what_if"][0]


def test_a_trial_that_differs_from_the_model_is_run_two_more_times(made):
    sick = made("surprise")  # three times as slow in a trial: no model knows
    shown, answer = on_a_terminal(
        sick, "--json", "--measure", "--what-if", "optimizer=2", "--steps", "20"
    )
    assert answer["trial"]["step_ms"] > 1.12 * answer["step_ms"]
    assert answer["trial"]["median_of"] == 3
    for text in ("trial of optimizer=2 · ", "trial 2 of 3 of", "trial 3 of 3 of", "the model"):
        assert text in shown, shown
    assert shown.count("running again") == 1
    assert len((sick.run / "trials.jsonl").read_text().splitlines()) == 1
    assert "median of 3 trials of" in " ".join(sick.ask().stdout.split())
    assert not sick.left()


def test_a_trial_that_says_what_the_model_says_is_enough(made):
    sick = made("none")
    trial = sick.measured("optimizer=2")
    if trial["median_of"] > 1 and os.getloadavg()[0] > 2 * len(os.sched_getaffinity(0)):
        pytest.skip("others have the cores")
    assert trial["median_of"] == 1
    assert "median of" not in sick.ask().stdout


def test_an_interrupt_in_the_second_trial_leaves_nothing(made):
    sick = made("surprise")
    words = [SONDE, "report", sick.run, "--measure", "--what-if", "optimizer=2"]
    child = subprocess.Popen(words, env=sick.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    for line in child.stderr:
        if b"it runs again" in line:
            break
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=30)
    assert child.returncode == -signal.SIGINT
    assert not sick.left()
    assert not processes_of(sick.scratch)
    assert not (sick.run / "trials.jsonl").exists()


def test_workers_are_tried_without_touching_the_program(made):
    sick = made("storage")  # four waits of 5 ms a batch, one after the other
    assert sick.mean_ms() > 22
    trial = sick.measured("workers=4", "--steps", "40")
    assert close(trial["step_ms"], 6) or trial["step_ms"] < 0.75 * sick.mean_ms()


@pytest.mark.parametrize(
    "illness, asked", [("evaluation", "evaluation=10"), ("checkpoint", "checkpoint=10")]
)
def test_what_lies_between_steps_is_measured_by_the_loop(made, illness, asked, tmp_path):
    words = (illness, "--save", tmp_path / "model.pt")
    sick = made(*words)
    trial = sick.measured(asked)
    truth = made(*words, "--cured").loop_s()
    assert close(trial["loop_s"], truth), (trial, truth, sick.loop_s())
    assert "left out: " in trial["note"]


def test_the_users_checkpoint_is_not_touched(made, tmp_path):
    file = tmp_path / "model.pt"
    sick = made("checkpoint", "--save", file)
    file.write_bytes(b"dear to me")
    before = file.stat()
    assert sick.measured("gc=2")  # checkpoints go on in it
    assert file.read_bytes() == b"dear to me"
    assert file.stat().st_mtime_ns == before.st_mtime_ns
    assert not (tmp_path / "model.pt.part").exists()


def test_the_result_stays_with_the_run_and_stands_beside_the_advice(made):
    sick = made("gc")
    assert "sonde report" in sick.ask().stdout and "--measure" in sick.ask().stdout
    done = sick.ask("--measure")
    assert done.returncode == 0 and "trial of" in done.stderr
    file = sick.run / "trials.jsonl"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    for text in (done.stdout, sick.ask().stdout):
        assert "TRIAL" in text and "measured" in text
        assert "Measured by a trial: " in text
        assert "--measure" not in text
    report = json.loads(sick.ask("--json").stdout)
    assert report["trials"][0]["finding"] == "gc_pauses"
    assert report["bottlenecks"][0]["trial"]["step_ms"] > 0
    # Whatever somebody writes into the file, there is a report.
    file.write_text('{"asked":"x\\u001b[31m","finding":"","steps":1,"note":"",'
                    '"step_ns":2,"low_ns":1,"high_ns":3}\n{]\n\0\n')
    shown = sick.ask()
    assert shown.returncode == 0 and "\x1b" not in shown.stdout


def test_a_program_that_fails_in_the_trial_leaves_the_prediction(made):
    sick = made("fails")
    done = sick.ask("--json", "--measure", "--what-if", "optimizer=2")
    assert done.returncode == 0
    assert "not twice" in done.stderr and "the prediction stands" in done.stderr
    answer = json.loads(done.stdout)["what_if"][0]
    assert answer["trial"] is None and answer["step_ms"] > 0
    assert not sick.left()


def test_what_is_part_of_the_loop_is_said_to_be(made):
    sick = made("inline")
    done = sick.ask("--measure", "--what-if", "evaluation=10")
    assert "part of train()" in done.stderr, done.stderr


def test_a_loop_that_saves_by_itself_has_its_saves_left_out(made, tmp_path):
    file = tmp_path / "model.pt"
    sick = made("saves", "--save", file)
    file.write_bytes(b"dear to me")
    trial = sick.measured("checkpoint=10")
    assert trial["note"] == "left out: torch.save()"
    assert trial["loop_s"] < sick.loop_s()
    assert file.read_bytes() == b"dear to me"


def processes_of(folder):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if str(folder).encode() in file.read():
                    found.append(int(pid))
        except OSError:
            pass
    return found


def test_an_interrupt_leaves_nothing(made):
    sick = made("storage")
    words = [SONDE, "report", sick.run, "--measure", "--what-if", "workers=2"]
    child = subprocess.Popen(words, env=sick.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for _ in range(100):
        if list(sick.scratch.glob("*/run/*.sonde")):
            break
        time.sleep(0.1)
    child.send_signal(signal.SIGINT)
    child.wait(timeout=30)
    child.communicate()
    assert child.returncode == -signal.SIGINT
    assert not sick.left()
    time.sleep(0.5)
    assert not processes_of(sick.scratch)
    assert not (sick.run / "trials.jsonl").exists()


def test_what_cannot_be_tried_is_refused_with_the_reason(made, tmp_path):
    sick = made("gc", "--steps", "40")
    copy = tmp_path / "copy"

    def refused(change):
        subprocess.run(["cp", "-r", sick.run, copy], check=True)
        about = json.loads((copy / "run.json").read_text())
        change(about)
        (copy / "run.json").write_text(json.dumps(about))
        done = subprocess.run(
            [SONDE, "report", copy, "--measure"], env=sick.env, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        subprocess.run(["rm", "-r", copy], check=True)
        assert done.returncode == 0
        return done.stderr

    def gone(about):
        about["cwd"] = str(tmp_path / "gone")

    def no_script(about):
        about["command"][1] = "/nowhere/x.py"

    def secret(about):
        about["command"].append("--key=[redacted]")

    def attached(about):
        about["attached"] = True

    assert "is no longer there" in refused(gone)
    assert "/nowhere/x.py" in refused(no_script)
    assert "redacted" in refused(secret)
    assert "cannot start it again" in refused(attached)


def test_the_scratch_folder_is_private(made):
    sick = made("gc", "--steps", "60")
    words = [SONDE, "report", sick.run, "--measure"]
    child = subprocess.Popen(words, env=sick.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    modes = set()
    while child.poll() is None and not modes:
        for one in sick.scratch.iterdir():
            modes.add(stat.S_IMODE(one.stat().st_mode))
        time.sleep(0.05)
    assert child.wait(timeout=120) == 0
    assert modes == {0o700}
