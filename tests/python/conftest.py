"""Where the package under test is, and running scripts with it under `sonde run`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

SOURCE = Path(os.environ.get("SONDE_SOURCE", Path(__file__).resolve().parents[2]))
BUILD = Path(os.environ.get("SONDE_BUILD", SOURCE / "build"))
PACKAGE = Path(os.environ.get("SONDE_PACKAGE", BUILD / "python"))
SONDE = BUILD / "sonde"

sys.path.insert(0, str(PACKAGE))
os.environ.pop("SONDE_RUN", None)

# The torch layer stays out of debug interpreters (sonde/_torch/__init__.py).
DEBUG = hasattr(sys, "gettotalrefcount")
collect_ignore = (
    ["test_torch_phases.py", "test_torch_loader.py", "test_torch_session.py"]
    if DEBUG
    else []
)
# Python above the extension, whichever that is: the same version's own build has seen it, or
# an older and a newer version (3.9, 3.11 and 3.13 run everything).
BETWEEN = sys.version_info[:2] in ((3, 10), (3, 12))
if PACKAGE.name == "python-abi3" or DEBUG or BETWEEN:
    collect_ignore += [
        "test_estimates.py",
        "test_examples.py",
        "test_experiments.py",
        "test_notebook.py",
        "test_optimize_data.py",
        "test_optimize_fields.py",
        "test_optimize_loader.py",
        "test_optimize_preprocessing.py",
        "test_regression.py",
        "test_requests.py",
        "test_trial.py",
    ]


def pytest_configure(config):
    text = "timing: asserts what is faster, and is skipped when it fails at twice the load"
    config.addinivalue_line("markers", text)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Who gets a twentieth of a core cannot prove that two are faster than one."""
    if pyfuncitem.get_closest_marker("timing") is None:
        return None
    wanted = pyfuncitem._fixtureinfo.argnames
    try:
        pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in wanted})
    except AssertionError:
        load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
        if load <= 2 * cores:
            raise
        pytest.skip(f"load {load:.0f} on {cores} cores")
    return True


def environment(**changes):
    env = {k: v for k, v in os.environ.items() if not k.startswith("SONDE_")}
    path = [str(PACKAGE), env.get("PYTHONPATH", "")]
    env["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    env.update({k: str(v) for k, v in changes.items()})
    return env


def python(*arguments, check=True, timeout=120, **options):
    """Runs this interpreter; output is kept as text."""
    options.setdefault("env", environment())
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        **options,
    )
    if check and done.returncode != 0:
        raise AssertionError(
            f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
        )
    return done


class Answer:
    """A report with ways to look things up."""

    def __init__(self, data, stdout=""):
        self.data, self.stdout = data, stdout

    def __getitem__(self, key):
        return self.data[key]

    def operations(self, name, kind=None):
        return [
            o
            for o in self.data["operations"]
            if o["name"] == name and kind in (None, o["kind"])
        ]

    def one(self, name, kind=None):
        found = self.operations(name, kind)
        assert len(found) == 1, f"{len(found)} operations {name!r} {kind or ''}"
        return found[0]

    def paths(self):
        return {tuple(o["path"]): o["count"] for o in self.data["operations"]}

    def phase(self, name):
        return next(
            (p["total_s"] for p in self.data["phases"] if p["phase"] == name), 0.0
        )

    def balanced(self):
        return all(o["unbalanced"] == 0 for o in self.data["operations"]) and (
            self.data["summary"]["orphan_ends"] == 0
        )


@pytest.fixture
def run(tmp_path):
    """run(script, *arguments): the script under `sonde run`, and its report."""
    return runner(tmp_path)


def runner(tmp_path):
    """What the fixture `run` is, for a directory of one's own: files are script0.py …"""
    count = iter(range(1000))

    def under_sonde(script, *arguments, options=(), check=True, **changes):
        number = next(count)
        file = tmp_path / f"script{number}.py"
        file.write_text(textwrap.dedent(script))
        directory = tmp_path / f"run{number}"
        words = [SONDE, "run", "-q", "-o", directory, *options, "--", sys.executable]
        done = subprocess.run(
            [*map(str, words), str(file), *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=120,
            env=environment(SONDE_PYTHON_LAYER=PACKAGE / "sonde" / "_site", **changes),
        )
        if check and done.returncode != 0:
            raise AssertionError(f"{done.returncode}\n{done.stdout}{done.stderr}")
        answer = subprocess.run(
            [str(SONDE), "report", str(directory), "--json"],
            capture_output=True,
            text=True,
            timeout=60,
            env=environment(),
            check=True,
        )
        return Answer(json.loads(answer.stdout), done.stdout)

    return under_sonde
