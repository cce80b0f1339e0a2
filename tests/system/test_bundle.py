# labels: no_asan
"""A run in one file: every verb opens it, and it does not say who made it."""

import gzip
import json
import os
import re
import socket
import subprocess
import tarfile
import time

import pytest
from sonde_test import SONDE, environment, run, sonde, workload

SECRET = "hunter2hunter2"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A home with a telling name, a run in it, and two bundles of it."""
    base = tmp_path_factory.mktemp("bundle")
    home = base / "home" / "margarethe"
    home.mkdir(parents=True)
    env = {**environment(), "HOME": str(home), "USER": "margarethe"}
    run(
        home / "run",
        workload("known_counts"),
        2,
        3,
        options=["--tag", f"api_key={SECRET}", "--tag", "team=blue", "--no-redact"],
        env=env,
        cwd=home,
    )
    for name, more in (("hidden", []), ("open", ["--unredacted"])):
        sonde(
            "export", home / "run", "--format", "bundle", *more, "-o", base / f"{name}.tgz",
            env=env,
        )  # fmt: skip
    return base, home


def numbers(answer):
    """What must be equal whatever names are hidden."""
    return {
        "operations": [(o["path"], o["count"]) for o in answer["operations"]],
        "summary": {k: answer["summary"][k] for k in ("events", "lost", "optimizer_steps")},
        "processes": [p["pid"] for p in answer["processes"]],
        "monitors": sorted(answer["monitors"]),
        "phases": [p["phase"] for p in answer["phases"]],
    }


@pytest.mark.parametrize("name", ["hidden", "open"])
def test_a_bundle_gives_the_same_report(place, name):
    base, home = place
    ours = json.loads(sonde("report", home / "run", "--json").stdout)
    theirs = json.loads(sonde("report", base / f"{name}.tgz", "--json").stdout)
    assert numbers(ours) == numbers(theirs)
    assert theirs["run"]["id"] == ours["run"]["id"]


@pytest.mark.parametrize(
    "words",
    [
        ["report"],
        ["report", "--full"],
        ["report", "--format", "markdown"],
        ["show"],
        ["export", "--format", "chrome", "-o", "-"],
        ["export", "--format", "folded", "--what", "zones", "-o", "-"],
        ["export", "--format", "csv", "--what", "monitors", "-o", "-"],
    ],
)
def test_every_verb_opens_it_and_cleans_up(place, tmp_path, words):
    done = sonde(
        words[0], place[0] / "hidden.tgz", *words[1:],
        env={**environment(), "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_bundle_of_a_bundle_is_one(place, tmp_path):
    sonde("export", place[0] / "open.tgz", "--format", "bundle", "-o", tmp_path / "again.tgz")
    first = json.loads(sonde("report", place[0] / "hidden.tgz", "--json").stdout)
    again = json.loads(sonde("report", tmp_path / "again.tgz", "--json").stdout)
    assert numbers(first) == numbers(again)


def content(path):
    with tarfile.open(path) as tar:
        return {m.name: tar.extractfile(m).read() for m in tar.getmembers()}


def test_names_and_secrets_are_hidden_in_every_file(place):
    base, _ = place
    for name, data in content(base / "hidden.tgz").items():
        assert b"margarethe" not in data, name
        assert SECRET.encode() not in data, name
    hidden = json.loads(content(base / "hidden.tgz")["run.json"])
    assert hidden["host"] == "hidden"
    assert hidden["tags"]["team"] == "blue"  # what is no secret stays
    host = socket.gethostname()
    if len(host) > 5:
        assert all(
            not re.search(rb"\b" + re.escape(host.encode()) + rb"\b", data)
            for data in content(base / "hidden.tgz").values()
        )


def test_unredacted_keeps_them(place):
    base, home = place
    files = content(base / "open.tgz")
    assert str(home) in json.loads(files["run.json"])["cwd"]
    assert SECRET.encode() in files["run.json"]
    assert json.loads(files["sonde.bundle.json"])["redacted"] is False
    assert json.loads(content(base / "hidden.tgz")["sonde.bundle.json"])["redacted"] is True


def test_the_run_itself_is_not_changed(place):
    _, home = place
    assert SECRET in (home / "run" / "run.json").read_text()


def test_tar_opens_it_and_modes_are_private(place):
    base, _ = place
    with tarfile.open(base / "hidden.tgz") as tar:
        members = tar.getmembers()
    assert members[0].name == "sonde.bundle.json"
    assert all(m.isreg() and "/" not in m.name and m.mode == 0o600 for m in members)
    assert os.stat(base / "hidden.tgz").st_mode & 0o777 == 0o600


def test_a_damaged_bundle_is_refused_with_a_reason(place, tmp_path):
    whole = (place[0] / "hidden.tgz").read_bytes()
    cut = tmp_path / "cut.tgz"
    cut.write_bytes(whole[: len(whole) // 2])
    env = {**environment(), "TMPDIR": str(tmp_path / "t")}
    (tmp_path / "t").mkdir()
    done = sonde("report", cut, check=False, env=env)
    assert done.returncode == 2 and "too early" in done.stderr
    other = tmp_path / "other.tgz"
    other.write_bytes(gzip.compress(b"nothing of the kind"))
    done = sonde("report", other, check=False, env=env)
    assert done.returncode == 2 and "bundle" in done.stderr
    assert list((tmp_path / "t").iterdir()) == []


def test_a_run_that_goes_on_is_not_bundled(tmp_path):
    child = subprocess.Popen(
        [SONDE, "run", "--quiet", "-o", tmp_path / "run", "--", "sleep", "30"],
        env=environment(),
    )
    try:
        for _ in range(200):
            if (tmp_path / "run" / "run.json").exists():
                break
            time.sleep(0.05)
        done = sonde(
            "export", tmp_path / "run", "--format", "bundle", "-o", tmp_path / "x.tgz",
            check=False,
        )  # fmt: skip
        assert done.returncode == 2 and "goes on" in done.stderr
        assert not (tmp_path / "x.tgz").exists()
    finally:
        child.terminate()
        child.wait(timeout=120)
