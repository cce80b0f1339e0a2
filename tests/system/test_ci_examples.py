# labels: no_asan
"""The CI files in examples/ci are what those systems read, and their commands do what they say: they are
run as written, in a repository with a remote, but for installing the package."""

import os
import re
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest
from sonde_test import BUILD, SOURCE, environment, sonde

yaml = pytest.importorskip("yaml")

BENCH = "#!/bin/sh\ntest -f built && sleep 0.1\n"
MAKEFILE = "all:\n\ttouch built\n"


@pytest.fixture
def clone(tmp_path):
    """A branch one commit ahead of origin/main."""
    origin, clone = tmp_path / "origin", tmp_path / "clone"
    env = environment(
        HOME=tmp_path, GIT_CONFIG_NOSYSTEM=1, SONDE_DIR=tmp_path / ".sonde",
        PATH=f"{BUILD}{os.pathsep}{os.environ['PATH']}", GITHUB_STEP_SUMMARY=tmp_path / "summary.md",
        CI_MERGE_REQUEST_TARGET_BRANCH_NAME="main",
    )  # fmt: skip

    def run(*words, cwd):
        identity = ["-c", "user.email=a@b.c", "-c", "user.name=x", "-c", "init.defaultBranch=main"]
        subprocess.run(["git", *identity, *words], cwd=cwd, env=env, check=True, capture_output=True)

    origin.mkdir()
    (origin / "bench.sh").write_text(BENCH)
    (origin / "bench.sh").chmod(0o755)
    (origin / "Makefile").write_text(MAKEFILE)
    run("init", "-q", cwd=origin)
    run("add", "-A", cwd=origin)
    run("commit", "-qm", "one", cwd=origin)
    run("clone", "-q", str(origin), str(clone), cwd=tmp_path)
    (clone / "README").write_text("a change")
    run("checkout", "-qb", "change", cwd=clone)
    run("add", "-A", cwd=clone)
    run("commit", "-qm", "two", cwd=clone)
    return clone, env


def load(name):
    return yaml.safe_load((SOURCE / "examples" / "ci" / name).read_text())


def perform(commands, clone, env):
    """As the runner does, but for the package, which is the build under test."""
    for command in commands:
        if "pip install" in command:
            continue
        # Ten minutes are for them, not for a test.
        assert "sonde check" not in command or "--budget 10m" in command
        command = command.replace("--budget 10m", "--budget 20s")
        done = subprocess.run(["bash", "-e", "-c", command], cwd=clone, env=env, capture_output=True,
                              text=True, timeout=120)  # fmt: skip
        assert done.returncode == 0, (command, done.stderr)


def test_the_github_example_runs_as_written(clone):
    clone, env = clone
    document = load("github-actions.yml")
    assert document[True] == "pull_request"  # YAML 1.1 reads "on" so, and so does GitHub
    (job,) = document["jobs"].values()
    assert job["runs-on"] and all(("uses" in s) != ("run" in s) for s in job["steps"])
    commands = [s["run"] for s in job["steps"] if "run" in s]
    assert {v for c in commands for v in re.findall(r"\$\{\{(.*?)\}\}", c)} == {" github.base_ref "}
    perform([c.replace("${{ github.base_ref }}", "main") for c in commands], clone, env)
    text = (clone / "gate.md").read_text()
    assert "sonde check" in text and "| wall |" in text and "| memory |" in text
    assert text in (clone.parent / "summary.md").read_text()


def test_the_gitlab_example_runs_as_written(clone):
    clone, env = clone
    job = load("gitlab-ci.yml")["performance"]
    assert all(isinstance(line, str) for line in job["script"])
    perform(job["script"], clone, env)
    suite = ElementTree.parse(clone / job["artifacts"]["reports"]["junit"]).getroot()
    assert suite.tag == "testsuite" and suite.get("tests") == "1" and suite.get("errors") == "0"


@pytest.mark.parametrize("name", ["docs/gate.md", "docs/guide-store.md", "docs/guide-search.md"])
def test_options_that_the_documents_use_exist(name):
    """Every `sonde VERB … --option` of the guides is in that verb's help."""
    help_of = {}
    found = 0
    for line in (SOURCE / name).read_text().splitlines():
        for verb, rest in re.findall(r"sonde (check|baseline|search|trends|store|log)\b([^|`#\n]*)", line):
            if verb not in help_of:
                help_of[verb] = sonde(verb, "--help").stdout
            for option in re.findall(r"(?<!\S)--[a-z][a-z-]+", rest.split(" -- ")[0]):
                found += 1
                assert option in help_of[verb], (name, verb, option)
    assert found > 0
