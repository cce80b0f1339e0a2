# labels: no_asan
# waits: yes
"""The first lines of a report say why a program ended."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from cgroups import MEMORY, in_group
from pythons import interpreters
from sonde_test import BUILD, SONDE, environment, program, report, run, sonde


def run_json(directory):
    return json.loads((directory / "run.json").read_text())


def die(directory, *arguments, options=(), **more):
    """Runs the program that dies and gives its report."""
    done = run(directory, program("deaths"), *arguments, options=options, check=False, **more)
    return done, report(directory)


def verdict(answer):
    return answer["summary"]["verdict"]


def text_report(directory):
    """As a reader sees it, lines joined."""
    return " ".join(sonde("report", directory).stdout.split())


# ---- Memory ---------------------------------------------------------------------------


def assert_killed_for_memory(answer, limit_mb, zone):
    end, death = answer["run"]["exit"], answer["run"]["death"]
    assert end["cause"] == "oom_cgroup"
    assert death["limit_mb"] == limit_mb
    assert 0.8 * limit_mb < death["size_mb"] < 1.2 * limit_mb
    assert death["growth_mb_per_s"] > 1
    assert zone in verdict(answer) and "limit" in verdict(answer)


def test_a_control_group_that_kills_is_named_with_limit_size_and_growth(tmp_path, group):
    path, limit = group
    limit.write_text(str(96 << 20))
    done, answer = die(tmp_path / "run", "grow", preexec_fn=in_group(path))
    assert done.returncode == -signal.SIGKILL
    assert answer["run"]["exit"]["signal"] == "SIGKILL"
    zone = "forward" if "zone forward" in verdict(answer) else "train"  # or between two
    assert_killed_for_memory(answer, 96, f"in zone {zone} of step ")
    assert answer["run"]["death"]["cgroup"].endswith(path.name)
    first = text_report(tmp_path / "run")
    assert f"KILLED by the OOM killer of cgroup /{path.name}: limit 96 MiB" in first


def test_a_worker_killed_for_memory_is_named(tmp_path, group):
    path, limit = group
    limit.write_text(str(96 << 20))
    done, answer = die(tmp_path / "run", "worker_grow", preexec_fn=in_group(path))
    assert done.returncode == 1
    worker = int(done.stdout.split()[1])
    assert answer["run"]["death"]["pid"] == worker
    zone = "forward" if "zone forward" in verdict(answer) else "load"  # or between two
    assert_killed_for_memory(answer, 96, f"in zone {zone}")
    assert f"worker {worker} (deaths) had" in verdict(answer)


def test_without_its_supervisor_the_next_command_explains(tmp_path, group):
    """The OOM killer may take the whole group, supervisor included."""
    path, limit = group
    limit.write_text(str(96 << 20))
    watched = subprocess.Popen(
        [SONDE, "run", "-q", "-o", tmp_path / "run", program("deaths"), "grow"],
        env=environment(), preexec_fn=in_group(path))
    child = wait_for_child(tmp_path / "run")
    watched.kill()
    watched.wait(60)
    end = time.monotonic() + 20
    while Path(f"/proc/{child}").exists() and time.monotonic() < end:
        time.sleep(0.05)
    sonde("recover", tmp_path / "run", check=False)
    answer = report(tmp_path / "run")
    assert answer["run"]["exit"] == {"code": None, "signal": None, "cause": "oom_cgroup"}
    assert "by the OOM killer of cgroup" in verdict(answer)
    assert answer["run"]["death"]["limit_mb"] == 96
    assert "in zone forward" in verdict(answer)


def test_sigkill_from_outside_is_not_the_oom_killer(tmp_path):
    watched = subprocess.Popen(
        [SONDE, "run", "-q", "-o", tmp_path / "run", program("deaths"), "hang"],
        env=environment())
    child = wait_for_child(tmp_path / "run")
    os.kill(child, signal.SIGKILL)
    assert watched.wait(60) == -signal.SIGKILL
    answer = report(tmp_path / "run")
    assert answer["run"]["exit"]["cause"] == "signal"
    assert "not by the OOM killer" in verdict(answer) or "cannot be told" in verdict(answer)
    assert "in zone stuck" in verdict(answer)


def test_a_program_that_fails_by_itself_for_memory_is_an_error(tmp_path):
    """RLIMIT_AS: malloc fails, the program notices; nobody killed it."""
    done = sonde("run", "-q", "-o", tmp_path / "run", "--", "sh", "-c",
                 f"ulimit -v 262144; exec {program('deaths')} grow", check=False)
    assert done.returncode == 1
    assert report(tmp_path / "run")["run"]["exit"] == {
        "code": 1, "signal": None, "cause": "error"}


def test_the_memory_limit_of_sonde_is_kept_and_told(tmp_path):
    done, answer = die(tmp_path / "run", "grow", options=["--memory-limit", "80MiB"])
    assert done.returncode in (-signal.SIGKILL, -signal.SIGTERM)
    notes = run_json(tmp_path / "run")["notes"]
    by_kernel = any("kept by the kernel" in n for n in notes)
    assert by_kernel or any("kept by the supervisor" in n for n in notes)
    assert answer["run"]["exit"]["cause"] == ("oom_cgroup" if by_kernel else "signal")
    assert answer["run"]["death"]["limit_mb"] == 80
    assert "--memory-limit 80 MiB" in verdict(answer)
    assert not list(MEMORY.rglob(f"sonde-{answer['run']['id']}"))


def test_without_control_groups_the_supervisor_keeps_the_limit(tmp_path):
    done, answer = die(tmp_path / "run", "grow", options=["--memory-limit", "80MiB"],
                       env=environment(SONDE_NO_CGROUP=1))
    assert done.returncode == -signal.SIGTERM
    assert answer["run"]["exit"]["cause"] == "signal"
    assert "ENDED by Sonde at --memory-limit 80 MiB" in verdict(answer)
    assert 80 < answer["run"]["death"]["size_mb"] < 400


def test_a_limit_that_is_not_reached_changes_nothing(tmp_path):
    for env in (environment(), environment(SONDE_NO_CGROUP=1)):
        done = sonde("run", "-q", "--memory-limit", "2GiB", "sh", "-c", "echo fine; exit 3",
                     cwd=tmp_path, check=False, env=env)
        assert (done.returncode, done.stdout) == (3, "fine\n")


# ---- Hangs -------------------------------------------------------------------------------


def wait_for_child(directory, patience=100):
    end = time.monotonic() + patience
    while time.monotonic() < end:
        try:
            pid = run_json(directory)["pid"]
            if pid and list(directory.glob("*.sonde")) and len(
                    list(directory.glob("*.sonde"))) > 1:
                time.sleep(0.3)
                return pid
        except (OSError, ValueError, KeyError):
            pass
        time.sleep(0.02)
    raise AssertionError("the program did not start")


def wait_for_file(path, patience=100):
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if path.exists() and path.stat().st_size:
            time.sleep(0.2)
            return path.read_text()
        time.sleep(0.05)
    raise AssertionError(f"{path.name} was not written")


@pytest.mark.parametrize("how, words", [("hang", "no CPU time and no I/O"),
                                        ("hang_steps", "no step for")])
def test_a_hang_leaves_the_stacks_and_kills_nothing(tmp_path, how, words):
    watched = subprocess.Popen(
        [SONDE, "run", "-q", "--hang", "1s", "-o", tmp_path / "run", program("deaths"), how],
        env=environment())
    stacks = wait_for_file(tmp_path / "run/hang-1.txt")
    assert watched.poll() is None  # nothing was killed
    pid = run_json(tmp_path / "run")["pid"]
    assert words in stacks
    assert f"process {pid} (deaths)" in stacks
    assert "train > stuck" in stacks
    assert "system call" in stacks and f"thread {pid}" in stacks
    assert (tmp_path / "run/hang-1.txt").stat().st_mode & 0o777 == 0o600
    watched.terminate()
    assert watched.wait(60) == -signal.SIGTERM
    answer = report(tmp_path / "run")
    assert answer["run"]["exit"]["cause"] == "hang"
    assert "HUNG: no " in verdict(answer) and "in zone stuck" in verdict(answer)


def test_a_hang_that_ends_by_itself_is_a_note(tmp_path):
    # Until it was noticed: on a busy machine steps are long, and so is what is too long.
    until = tmp_path / "run/hang-1.txt"
    done, answer = die(tmp_path / "run", "resume", until, options=["--hang", "1s"])
    assert done.returncode == 0
    assert answer["run"]["exit"]["cause"] == "ok"
    notes = run_json(tmp_path / "run")["notes"]
    assert any(n.startswith("hang: no step for") for n in notes)
    assert any("ended by itself" in n for n in notes)


def line_of(source, words):
    """The number of the line that has the words."""
    lines = (Path(__file__).parent / "progs" / source).read_text().splitlines()
    return 1 + next(i for i, line in enumerate(lines) if words in line)


def hang_and_free(directory, command, **variables):
    """Runs a program that hangs until SIGUSR1; its stacks, then its report."""
    watched = subprocess.Popen(
        [SONDE, "run", "-q", "--hang", "1s", "-o", directory, *command],
        env=environment(**variables), stdout=subprocess.PIPE, text=True)
    try:
        stacks = wait_for_file(directory / "hang-1.txt")
        assert watched.poll() is None  # nothing was killed
        time.sleep(0.3)
        os.kill(run_json(directory)["pid"], signal.SIGUSR1)
        out, _ = watched.communicate(timeout=120)
    finally:
        watched.terminate()
    assert (watched.returncode, out) == (0, "freed\n")  # and it goes on
    return stacks, report(directory)


def thread_part(stacks, words):
    """What is written about the one thread that has the words."""
    parts = [part for part in stacks.split("\n  thread ")[1:] if words in part]
    assert len(parts) == 1
    return parts[0]


def assert_in_order(text, *words):
    places = [text.index(w) for w in words]
    assert places == sorted(places)


@pytest.mark.parametrize("name", ["deadlock", "deadlock_pointers"])
def test_a_deadlock_of_mutexes_names_functions_and_lines(tmp_path, name):
    """Two threads, without and with frame pointers, nothing stopped: unwound from outside."""
    stacks, answer = hang_and_free(tmp_path / "run", [program(name)])
    main = f"deadlock.c:{line_of('deadlock.c', 'the main thread waits here')})"
    other = f"deadlock.c:{line_of('deadlock.c', 'the other thread waits here')})"
    part = thread_part(stacks, "take_right_too (")
    assert main in part and "train > both" in part
    assert_in_order(part, "take_right_too (", "hold_left (", "native  main (")
    part = thread_part(stacks, "take_left_too (")
    assert other in part
    assert_in_order(part, "take_left_too (", "hold_right (")
    (hang,) = answer["hangs"]
    assert hang["file"] == str(tmp_path / "run/hang-1.txt")
    assert hang["lasted_s"] is None or hang["lasted_s"] >= hang["waited_s"] >= 1
    threads = hang["threads"]
    assert [t["main"] for t in threads] == [True, False]
    assert threads[0]["native"] == f"take_right_too ({main}" and threads[0]["zone"] == "both"
    assert threads[1]["native"] == f"take_left_too ({other}"
    text = text_report(tmp_path / "run")
    assert f"{name[:15]} take_right_too ({main}, zone both" in text
    full = sonde("report", "--full", "--width", "80", tmp_path / "run").stdout
    hang_lines = full[full.index(" HANG"):].split("\n\n")[0].splitlines()
    assert any("take_left_too" in line for line in hang_lines)
    assert max(map(len, hang_lines)) <= 80


@pytest.mark.parametrize("minor", interpreters())
def test_a_deadlock_in_python_names_functions_and_lines(tmp_path, minor):
    source = Path(__file__).parent / "progs/py_deadlock.py"
    stacks, answer = hang_and_free(tmp_path / "run", [interpreters()[minor], source],
                                   LIBSONDE=BUILD / "libsonde.so")
    main = f"py_deadlock.py:{line_of(source.name, 'the main thread waits here')})"
    other = f"py_deadlock.py:{line_of(source.name, 'the other thread waits here')})"
    assert f"Python 3.{minor}" in stacks
    part = thread_part(stacks, "python  take_second_too (")
    assert main in part
    assert_in_order(part, "take_second_too (", "python  train (", "python  <module> (")
    part = thread_part(stacks, "python  take_first_too (")
    assert other in part
    assert_in_order(part, "take_first_too (", "python  other (")
    (hang,) = answer["hangs"]
    assert [t["python"] for t in hang["threads"]] == [
        f"take_second_too ({main}", f"take_first_too ({other}"]
    assert [t["gil"] for t in hang["threads"]] == [None, None]
    assert f"take_second_too ({main}" in text_report(tmp_path / "run")


@pytest.mark.parametrize("minor", interpreters())
def test_who_holds_the_interpreter_lock_and_who_waits_is_told(tmp_path, minor):
    source = Path(__file__).parent / "progs/py_deadlock.py"
    stacks, answer = hang_and_free(tmp_path / "run", [interpreters()[minor], source, "gil"],
                                   LIBSONDE=BUILD / "libsonde.so")
    assert "holds the GIL" in thread_part(stacks, "python  sleep_with_the_lock (")
    # It wakes every 5 ms to ask again. Sonde looks twenty times before it calls it awake;
    # where nobody gives it a processor for so long, that is what it is.
    waiting = thread_part(stacks, "python  work (")
    asleep = "state R" not in waiting.splitlines()[0]
    assert ("waits for the GIL" in waiting) == asleep
    gil = [t["gil"] for t in answer["hangs"][0]["threads"]]
    assert gil == ["holds", "waits" if asleep else None]
    assert ", holds the GIL" in text_report(tmp_path / "run")


@pytest.mark.parametrize("how, options", [("sleep", ["--hang", "1s"]), ("hang", ["--no-hang"])])
def test_no_zone_open_or_nobody_asked_is_no_hang(tmp_path, how, options):
    done, answer = die(tmp_path / "run", how, options=[*options, "--timeout", "3s"])
    assert done.returncode == -signal.SIGTERM
    assert answer["run"]["exit"]["cause"] == "timeout"
    assert not list((tmp_path / "run").glob("hang-*"))


# ---- Workers, faults ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGKILL"])
def test_a_worker_that_died_is_named(tmp_path, name):
    done, answer = die(tmp_path / "run", "worker", int(signal.Signals[name]))
    assert done.returncode == 1
    worker = int(done.stdout.split()[1])
    end, death = answer["run"]["exit"], answer["run"]["death"]
    assert (end["code"], end["cause"]) == (1, "worker_died")
    assert (death["pid"], death["process"]) == (worker, "deaths")
    assert f"WORKER {worker} (deaths) was killed by {name}" in verdict(answer)
    assert "in zone load" in verdict(answer)


def test_a_worker_that_gave_up_is_named(tmp_path):
    done, answer = die(tmp_path / "run", "worker_exit", 7)
    worker = int(done.stdout.split()[1])
    assert answer["run"]["exit"]["cause"] == "worker_died"
    assert f"WORKER {worker} (deaths) ended with exit 7" in verdict(answer)


@pytest.mark.parametrize("script", ["grep -q x /dev/null; exit 3", "(exit 3); exit 3",
                                    "sleep 9 & sleep 0.2; kill $!; wait; exit 3"])
def test_commands_that_fail_in_a_script_are_no_dead_workers(tmp_path, script):
    done = run(tmp_path / "run", "sh", "-c", script, check=False)
    assert done.returncode == 3
    assert done.report()["run"]["exit"]["cause"] == "error"


def test_a_fault_is_told_with_its_address(tmp_path):
    done, answer = die(tmp_path / "run", "fault")
    assert done.returncode == -signal.SIGSEGV
    assert answer["run"]["exit"]["cause"] == "signal"
    assert "SIGSEGV" in verdict(answer)
    assert "in zone crash" in verdict(answer) or "in crash" in verdict(answer)
    stack = answer["run"]["death"]["stack"] if answer["run"]["death"] else []
    if stack:
        assert "at address 0x10 in " in verdict(answer)
        assert stack[0].startswith(("fault at deaths.c:", "fault in deaths", "deaths+0x"))
        assert any(frame.startswith(("main ", "deaths+0x")) for frame in stack[1:])


def test_a_worker_s_fault_has_its_stack(tmp_path):
    done, answer = die(tmp_path / "run", "worker", int(signal.SIGABRT))
    stack = answer["run"]["death"]["stack"]
    if not stack:
        pytest.skip("without the preload library nobody writes it down")
    assert answer["run"]["death"]["pid"] == int(done.stdout.split()[1])
    assert any("worker" in frame or "deaths+0x" in frame for frame in stack)


def lives(pid):
    """A zombie does not: perhaps nobody waits for it here."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rsplit(")", 1)[1].split()[0] not in "ZX"


def end_without_supervisor(directory, how):
    """Kills the supervisor; the program dies by itself afterwards."""
    watched = subprocess.Popen([SONDE, "run", "-q", "-o", directory, program("deaths"), how],
                               env=environment())
    child = wait_for_child(directory)
    watched.kill()
    watched.wait(60)
    end = time.monotonic() + 30
    while lives(child) and time.monotonic() < end:
        time.sleep(0.05)
    sonde("recover", directory, check=False)
    if not list(directory.glob("crash-*.fault")):
        pytest.skip("without the preload library nobody writes it down")
    return child, report(directory)


def test_a_fault_without_supervisor_has_its_stack(tmp_path):
    child, answer = end_without_supervisor(tmp_path / "run", "orphan_fault")
    assert answer["run"]["exit"] == {"code": None, "signal": "SIGSEGV", "cause": "signal"}
    death = answer["run"]["death"]
    assert death["pid"] == child
    assert death["stack"][0].startswith(("fault at deaths.c:", "fault in deaths", "deaths+0x"))
    assert any(frame.startswith(("main ", "deaths+0x")) for frame in death["stack"][1:])
    assert "KILLED by SIGSEGV at address 0x10 in " in verdict(answer)


def test_a_worker_that_nobody_met_is_named_by_its_last_words(tmp_path):
    """It lives for less than the supervisor looks away."""
    done, answer = die(tmp_path / "run", "early_worker")
    if not list((tmp_path / "run").glob("crash-*.fault")):
        pytest.skip("without the preload library nobody writes it down")
    worker = int(done.stdout.split()[1])
    end, death = answer["run"]["exit"], answer["run"]["death"]
    assert (end["code"], end["cause"]) == (1, "worker_died")
    assert death["pid"] == worker
    assert death["stack"][0].startswith(("fault at deaths.c:", "fault in deaths", "deaths+0x"))
    assert f"{worker} " in verdict(answer) and "was killed by SIGSEGV" in verdict(answer)


def test_a_worker_s_fault_without_supervisor_is_a_hint(tmp_path):
    child, answer = end_without_supervisor(tmp_path / "run", "orphan_worker")
    assert answer["run"]["exit"] == {"code": None, "signal": None, "cause": "unknown"}
    death = answer["run"]["death"]
    assert death["pid"] not in (None, child)
    assert death["stack"][0].startswith(("fault at deaths.c:", "fault in deaths", "deaths+0x"))
    assert f"process {death['pid']} was killed by SIGSEGV" in verdict(answer)


# ---- Space ----------------------------------------------------------------------------------


def small_shm(*command):
    """The command with a /dev/shm of 4 MiB and a disk of 4 MiB at /mnt, if we may."""
    script = ("mount -t tmpfs -o size=4m none /dev/shm && "
              "mount -t tmpfs -o size=4m none /mnt && exec \"$@\"")
    return ["unshare", "-m", "sh", "-c", script, "sh", *map(str, command)]


@pytest.fixture
def may_mount():
    done = subprocess.run(small_shm("true"), capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")


def test_an_exhausted_shm_is_told(tmp_path, may_mount):
    done = subprocess.run(
        small_shm(SONDE, "run", "-q", "-o", tmp_path / "run", program("deaths"), "bus",
                  "/dev/shm/batch", 64, 150), env=environment(), capture_output=True, text=True)
    assert done.returncode == -signal.SIGBUS
    answer = report(tmp_path / "run")
    assert answer["run"]["exit"]["cause"] == "shm_exhausted"
    assert "GOT SIGBUS" in verdict(answer).upper() and "/dev/shm was full" in verdict(answer)


def test_an_shm_that_fills_between_two_looks_is_told_by_the_victim(tmp_path, may_mount):
    done = subprocess.run(
        small_shm(SONDE, "run", "-q", "-o", tmp_path / "run", program("deaths"), "bus",
                  "/dev/shm/batch", 64, 0), env=environment(), capture_output=True, text=True)
    assert done.returncode == -signal.SIGBUS
    if not list((tmp_path / "run").glob("crash-*.fault")):
        pytest.skip("without the preload library nobody saw it")
    assert report(tmp_path / "run")["run"]["exit"]["cause"] == "shm_exhausted"


def test_a_full_disk_is_told(tmp_path, may_mount):
    done = subprocess.run(
        small_shm("sh", "-c", 'cd /mnt && exec "$@"', "sh", SONDE, "run", "-q", "-o",
                  tmp_path / "run", program("deaths"), "disk", "data"),
        env=environment(), capture_output=True, text=True)
    assert done.returncode == 1
    assert "No space left" in done.stderr
    answer = report(tmp_path / "run")
    assert answer["run"]["exit"]["cause"] == "disk_full"
    assert "/mnt was full" in verdict(answer)


# ---- Asked to end ----------------------------------------------------------------------------


def asked_to_end(tmp_path, **variables):
    watched = subprocess.Popen(
        [SONDE, "run", "-q", "-o", tmp_path / "run", program("deaths"), "hang"],
        env=environment(**variables))
    wait_for_child(tmp_path / "run")
    watched.terminate()
    assert watched.wait(60) == -signal.SIGTERM
    return report(tmp_path / "run")


def test_a_scheduler_that_ends_the_job_preempts_it(tmp_path):
    answer = asked_to_end(tmp_path, SLURM_JOB_ID=4711)
    assert answer["run"]["exit"]["cause"] == "preempted"
    assert "PREEMPTED: SIGTERM from Slurm job 4711" in verdict(answer)


def test_a_person_who_ends_it_does_not(tmp_path):
    answer = asked_to_end(tmp_path)
    assert answer["run"]["exit"]["cause"] == "signal"
    assert f"by SIGTERM from process {os.getpid()}" in verdict(answer)


def test_what_the_program_knew_is_believed(tmp_path):
    done, answer = die(tmp_path / "run", "hint", "oom_gpu")
    assert done.returncode == 1
    assert answer["run"]["exit"]["cause"] == "oom_gpu"
    assert "CUDA OUT OF MEMORY" in verdict(answer).upper()


def test_a_cause_that_is_none_is_not_believed(tmp_path):
    _, answer = die(tmp_path / "run", "hint", "martians")
    assert answer["run"]["exit"]["cause"] == "error"
