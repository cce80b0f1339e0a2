# labels: no_asan
"""The programs in examples/ and in docs/ compile without a warning and do what they say."""

import re
import subprocess

import pytest
from sonde_test import (
    BUILD,
    SOURCE,
    assert_consistent,
    counts_by_name,
    environment,
    operation,
    report,
    run,
)

EXAMPLES = ["training_loop", "operations", "requests", "session", "bench", "demo"]
FLAGS = ["-O2", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE"]


def build(folder, name, sources):
    command = ["cc", *FLAGS, "-I", SOURCE / "include", "-I", SOURCE / "src", *sources]
    command += ["-o", folder / name, BUILD / "libsonde.a", "-lm", "-pthread"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / name


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("examples")
    for name in EXAMPLES:
        sources = [SOURCE / "examples" / f"{name}.c"]
        if name == "demo":
            sources += sorted((SOURCE / "src/demo").glob("*.c"))
        build(folder, name, sources)
    return folder


def test_every_example_is_known_here():
    known = [*EXAMPLES, "experiments"]  # that one needs the store: test_query.py
    assert sorted(known) == sorted(p.stem for p in (SOURCE / "examples").glob("*.c"))


def test_the_training_loop(built, tmp_path):
    done = run(tmp_path / "run", built / "training_loop")
    answer = done.report()
    assert done.stdout.startswith("y = 3.0")
    assert counts_by_name(answer) == {"load": 200, "forward": 200, "backward": 200, "update": 200}
    assert answer["run"]["params"]["learning_rate"] == "0.5"
    assert answer["run"]["metrics"]["loss"] < 0.01
    assert_consistent(answer)


def test_operations(built, tmp_path):
    done = run(tmp_path / "run", built / "operations")
    answer = done.report()
    assert "experiment 7: memory +32 MiB, peak +32 MiB, 1 value" in done.stdout
    assert "greedy took more than 16 MiB" in done.stdout
    experiment = operation(answer, "experiment 7")
    assert experiment["component"] == "evolution"
    assert experiment["custom"]["accuracy"]["last"] == 0.93
    assert "not today" not in counts_by_name(answer)


def test_requests(built, tmp_path):
    request = operation(run(tmp_path / "run", built / "requests").report(), "request")
    assert request["count"] == 20
    assert request["mean_ms"] >= 6


def test_a_session_without_sonde_run(built, tmp_path):
    done = subprocess.run(
        [built / "session"], cwd=tmp_path, env=environment(), capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("/session-run, 0 events lost\n")
    assert counts_by_name(report(tmp_path / "session-run")) == {"work": 2000}


def test_bench(built, tmp_path):
    done = subprocess.run([built / "bench"], capture_output=True, text=True, check=True)
    assert re.match(r"[\d.]+ ms ± [\d.]+, 95 % interval", done.stdout)


def test_the_demo_on_its_own(built, tmp_path):
    done = run(tmp_path / "run", built / "demo", 60)
    assert "checksum" in done.stdout
    assert counts_by_name(done.report())["adamw"] == 60


def programs_in_docs():
    for page in sorted((SOURCE / "docs").glob("*.md")):
        blocks = re.findall(r"^```c\n(.*?)^```", page.read_text(), re.M | re.S)
        for number, block in enumerate(blocks):
            if "int main" in block:
                yield pytest.param(block, id=f"{page.name}-{number}")


@pytest.mark.parametrize("source", programs_in_docs())
def test_programs_in_the_documentation_work(tmp_path, source):
    file = tmp_path / "program.c"
    file.write_text(source)
    done = run(tmp_path / "run", build(tmp_path, "program", [file]))
    assert_consistent(done.report())
