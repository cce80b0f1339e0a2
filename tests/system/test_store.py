"""The store: runs and logged experiments go in and are found, whatever happens to it."""

import csv
import io
import json
import os
import signal
import sqlite3
import stat
import subprocess
import time

import pytest
from sonde_test import SONDE, environment, sonde


@pytest.fixture
def here(tmp_path):
    """A folder with its own store; returns a function that runs sonde in it."""
    env = environment(SONDE_DIR=tmp_path / ".sonde")

    def go(*words, **options):
        return sonde(*words, cwd=tmp_path, env=options.pop("env", env), **options)

    go.path, go.env = tmp_path, env
    return go


def found(go, *words):
    done = go("search", "--json", *words, check=False)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)["experiments"]


def sql(go, text):
    return json.loads(go("store", "--json", "sql", text).stdout)


def test_a_run_is_in_the_store_when_it_has_ended(here):
    here("run", "--name", "first", "--param", "lr=0.5", "--tag", "team=x", "--", "sleep", "0.05")
    here("run", "--quiet", "--", "true", "--batch-size", "32", "--fast")
    runs = found(here, "--sort", "started", "--ascending")
    assert [r.get("name") for r in runs] == ["first", None]
    assert runs[0]["params"] == {"lr": 0.5} and runs[0]["tags"] == {"team": "x"}
    assert runs[0]["duration_s"] >= 0.05 and runs[0]["memory_peak_mb"] > 0
    assert runs[0]["exit_code"] == 0 and "efficiency" not in runs[0]
    # What the command line says is configuration too.
    assert runs[1]["params"] == {"batch_size": 32, "fast": True}
    assert "sleep" in runs[0]["command"]
    profile = sql(here, "SELECT json FROM profiles WHERE run = (SELECT id FROM runs LIMIT 1)")
    assert json.loads(profile[0]["json"])["schema"] == "sonde.report/1"


def test_files_are_private(here):
    here("log", "--param", "a=1")
    for path in [here.path / ".sonde", *(here.path / ".sonde").iterdir()]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_profiles_in_files_of_their_own(here):
    here("store", "config", "profiles=files")
    here("run", "--no-report", "--", "true")
    [run] = found(here)
    path = here.path / ".sonde" / "profiles" / f"{run['id']}.json"
    assert json.loads(path.read_text())["run"]["id"] == run["id"]
    assert sql(here, "SELECT json FROM profiles")[0]["json"] is None
    here("store", "config", "profiles=elsewhere", check=False)


def test_what_was_logged_later_joins_its_run(here):
    here("run", "--quiet", "--", "true")
    here("log", "--run", "@last", "--metric", "accuracy=0.93", "--tag", "note=good")
    [run] = found(here, "metrics.accuracy > 0.9")
    assert run["kind"] == "run" and run["tags"] == {"note": "good"}
    assert run["accuracy_per_s"] > 0
    assert here("log", "--run", "nobody", "--metric", "a=1", check=False).returncode == 2


def test_lines_in_bulk(here):
    lines = [json.dumps({"id": f"e{i}", "params": {"i": i}}) for i in range(3000)]
    lines[7] = '{"params": '
    lines.append(json.dumps({"id": "e1"}))
    done = here("log", "--jsonl", "-", input="\n".join(lines), check=False)
    assert done.returncode == 2 and "line 8:" in done.stderr and "already" in done.stderr
    assert done.stdout.startswith("2999 logged")
    assert len(found(here, "--all")) == 2999
    assert found(here, "params.i = 2999")[0]["id"] == "e2999"


def test_what_was_piped_is_found_before_the_pipe_ends(here):
    here("log", "--param", "zero=0")
    process = subprocess.Popen(
        [SONDE, "log", "--jsonl", "-"], stdin=subprocess.PIPE, cwd=here.path, env=here.env,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    process.stdin.write(b'{"params": {"first": 1}}\n')
    process.stdin.flush()
    deadline = time.monotonic() + 60
    while not found(here, "params.first = 1") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert found(here, "params.first = 1")
    process.stdin.write(b'{"params": {"second": 1}}\n')
    process.stdin.flush()
    time.sleep(0.3)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert here("store", "verify").stdout == "the store is sound\n"
    assert found(here, "params.first = 1")


def test_many_commands_at_once_lose_nothing(here):
    processes = [
        subprocess.Popen(
            [SONDE, *(["run", "-q", "--", "true"] if i % 4 == 0 else ["log", "-p", f"i={i}"])],
            cwd=here.path, env=here.env, stdout=subprocess.DEVNULL,
        )
        for i in range(16)
    ]  # fmt: skip
    assert [p.wait() for p in processes] == [0] * 16
    kinds = [e["kind"] for e in found(here, "--all")]
    assert kinds.count("run") == 4 and kinds.count("log") == 12


def test_secrets_stay_out(here):
    here("log", "--param", "api_key=sk-12345678901234567890", "--param", "lr=1")
    here("log", "--jsonl", "-", input='{"params": {"password": "geheim", "n": 1}}')
    text = b"".join(p.read_bytes() for p in (here.path / ".sonde").iterdir() if p.is_file())
    assert b"geheim" not in text and b"sk-1234" not in text


def test_old_runs_make_way_and_are_remembered(here):
    env = {**here.env, "SONDE_KEEP_RUNS": "2"}
    here("run", "-q", "--name", "kept", "--", "true", env=env)
    for _ in range(4):
        here("run", "-q", "--", "true", env=env)
    listed = json.loads(here("list", "--json").stdout)
    assert len(listed) == 5
    gone = [r for r in listed if not r["directory"]]
    assert len(gone) == 2 and not any(r["name"] for r in gone)
    assert len(list((here.path / ".sonde" / "runs").iterdir())) == 3
    shown = here("show", gone[0]["id"]).stdout
    assert "directory is gone" in shown
    here("baseline", "set", "b", listed[0]["id"])
    here("store", "gc", "--runs", "1")
    left = {p.name for p in (here.path / ".sonde" / "runs").iterdir()}
    assert listed[0]["id"] in left  # a baseline
    dry = here("store", "gc", "--runs", "1", "--dry-run").stdout
    assert "would go" in dry


def test_damage_stops_nothing_and_is_mended(here):
    here("run", "-q", "--name", "one", "--", "true")
    here("log", "--param", "x=1")
    for name in ("sonde.db-wal", "sonde.db-shm"):
        (here.path / ".sonde" / name).unlink(missing_ok=True)
    (here.path / ".sonde" / "sonde.db").write_bytes(b"rubbish" * 1000)
    done = here("run", "--no-report", "--name", "two", "--", "sh", "-c", "exit 3", check=False)
    assert done.returncode == 3 and "verify --repair" in done.stderr
    assert "one" in here("list").stdout and "two" in here("report", "two").stdout + "two"
    assert here("search", check=False).returncode == 2
    assert here("store", "verify", check=False).returncode == 1
    mended = here("store", "verify", "--repair").stdout
    assert "2 read again" in mended
    assert {r.get("name") for r in found(here)} == {"one", "two"}
    assert here("store", "verify").returncode == 0


def test_a_store_that_cannot_be_written_stops_nothing(here):
    here("log", "--param", "x=1")
    if os.geteuid() == 0:
        # Root writes everywhere: a directory where the file should be says no to all.
        for name in ("sonde.db", "sonde.db-wal", "sonde.db-shm"):
            (here.path / ".sonde" / name).unlink(missing_ok=True)
        (here.path / ".sonde" / "sonde.db").mkdir()
    else:
        (here.path / ".sonde" / "sonde.db").chmod(0)
    done = here("run", "--no-report", "--", "sh", "-c", "exit 4", check=False)
    assert done.returncode == 4
    assert here("list").returncode == 0


def test_others_read_it_without_sonde(here):
    here("log", "-p", "lr=0.5", "-p", "name=x", "-m", "accuracy=0.9", "--duration", "10s",
         "--memory", "100MB")  # fmt: skip
    copy = here.path / "copy.db"
    here("store", "backup", copy)
    with sqlite3.connect(copy) as db:
        row = db.execute(
            "SELECT duration, memory_peak_mb, accuracy, parameters, efficiency FROM experiments"
        ).fetchone()
        assert row[:3] == (10.0, 100.0, 0.9) and json.loads(row[3]) == {"lr": 0.5, "name": "x"}
        assert row[4] == pytest.approx(0.9 / 1000)
        assert db.execute("SELECT key, value FROM params ORDER BY key").fetchall() == [
            ("lr", 0.5), ("name", "x"),
        ]  # fmt: skip
    assert here("store", "sql", "DELETE FROM runs", check=False).returncode == 2


def test_search_as_a_person_would(here):
    for i in range(12):
        here("log", "--id", f"x{i}", "-p", f"lr={0.1 * i:.1f}", "-p", "opt=" + "ab"[i % 2],
             "-m", f"accuracy={0.5 + i / 100}", "--duration", f"{i + 1}s", "--memory", "10MB")  # fmt: skip
    assert len(found(here)) == 10  # the default
    assert [e["id"] for e in found(here, "--sort", "accuracy", "-n", "2")] == ["x11", "x10"]
    assert [e["id"] for e in found(here, "--max-duration", "2s")] == ["x1", "x0"]
    assert len(found(here, "--max-memory", "5MB")) == 0
    efficient = found(here, "--min-efficiency", "0.01")
    assert all(e["efficiency"] >= 0.01 for e in efficient) and len(efficient) == 5
    alike = found(here, "--like", "x5", "-n", "3", "--explain")
    assert {alike[0]["id"], alike[1]["id"]} == {"x3", "x7"} and alike[0]["similarity"] < 1
    assert found(here, "--like", '{"params": {"lr": 0.5, "opt": "b"}}')[0]["id"] == "x5"
    assert found(here, "params.opt = a and duration < 4s", "--sort", "id")[0]["id"] == "x2"
    table = list(csv.DictReader(io.StringIO(here("search", "--all", "--format", "csv").stdout)))
    assert len(table) == 12
    for column in ("experiment_id", "duration", "memory_peak_mb", "gpu_memory_peak_mb",
                   "accuracy", "parameters", "efficiency", "params.lr", "metrics.accuracy"):  # fmt: skip
        assert column in table[0]
    assert here("search", "params.lr > 99", check=False).returncode == 1
    for wrong in ("params.lr >", '{"a": {"$x": 1}}', "a = 1 oder b = 2"):
        done = here("search", wrong, check=False)
        assert done.returncode == 2 and "at character" in done.stderr
    assert "ALIKE" in here("search", "--like", "x5", "--explain").stdout


def test_trends(here):
    lines = []
    for i in range(60):
        accuracy = 0.5 + i / 200 if i < 40 else 0.3 + i / 2000
        lines.append(
            json.dumps(
                {
                    "id": f"t{i:02d}",
                    "started": 1_700_000_000 + i * 3600,
                    "metrics": {"accuracy": accuracy},
                    "duration_s": 100 + i,
                    "memory_peak_mb": 500,
                }
            )
        )
    here("log", "--jsonl", "-", "--quiet", input="\n".join(lines))
    answer = json.loads(here("trends", "--json", "--where", "started < 2023-11-16").stdout)
    pair = answer["correlations"][0]
    assert pair["name"] == "duration_s" and pair["pearson"]["r"] > 0.99
    assert pair["spearman"]["low"] > 0.9 and pair["n"] < 60
    whole = json.loads(here("trends", "--json").stdout)
    assert whole["experiments"] == 60 and len(whole["most_efficient"]) == 5
    assert whole["most_efficient"][0]["efficiency"] >= whole["most_efficient"][1]["efficiency"]
    assert [c["experiment"] for c in whole["course"]["changes"]] == ["t40"] or any(
        c["experiment"] == "t40" for c in whole["course"]["changes"]
    )
    front = {p["id"] for p in whole["pareto"]}
    assert "t00" in front and "t39" in front and "t59" not in front
    text = here("trends").stdout
    assert "PARETO" in text and "changed with t40" in text
    rows = list(csv.DictReader(io.StringIO(here("trends", "--format", "csv").stdout)))
    assert len(rows) == 60 and rows[0]["experiment_id"] == "t00"
