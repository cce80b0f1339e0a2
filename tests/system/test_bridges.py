# labels: no_asan
"""Bridges to a real ChromaDB and from a real MLflow, in the virtual environment of tools/setup."""

import json
import os
import subprocess
import textwrap
from pathlib import Path

import pytest
from sonde_test import BUILD, SONDE, environment

VENV = Path(
    os.environ.get("SONDE_CHROMA")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sonde" / "chroma"
)
pytestmark = pytest.mark.skipif(
    not (VENV / "stamp").exists(), reason="no ChromaDB and MLflow: run tools/setup"
)


def python(tmp_path, script):
    env = environment(
        SONDE_DIR=tmp_path / ".sonde",
        SONDE_COMMAND=SONDE,
        PYTHONPATH=BUILD / "python",
        ANONYMIZED_TELEMETRY="False",
        MLFLOW_DISABLE_TELEMETRY="true",
        MLFLOW_ALLOW_FILE_STORE="true",
    )
    done = subprocess.run(
        [VENV / "bin" / "python", "-c", textwrap.dedent(script)],
        cwd=tmp_path, env=env, capture_output=True, text=True, timeout=180,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_to_chroma_and_back_with_the_same_neighbours(tmp_path):
    answer = python(
        tmp_path,
        """
        import json, os, random, chromadb, sonde
        r = random.Random(1)
        with sonde.campaign() as c:
            for i in range(200):
                c.log({"lr": 10 ** r.uniform(-4, -1), "opt": r.choice("abc"), "amp": r.random() < .5},
                      {"accuracy": r.random()}, id=f"e{i}", document=f"number {i}", duration_s=r.random())
        client = chromadb.EphemeralClient()
        collection = client.create_collection("x" * 3, embedding_function=None,
                                              configuration={"hnsw": {"space": "l2"}})
        sent = sonde.to_chroma(collection)
        same = 0
        for q in range(0, 200, 20):
            ours = sonde.search(like=f"e{q}", n_results=5, vectors=True)
            vector = sonde.search(f"id = e{q}", vectors=True)[0]["vector"]
            theirs = collection.query(query_embeddings=[[float(x) for x in vector]], n_results=6)
            mine = {e.id for e in ours}
            same += len(mine & (set(theirs["ids"][0]) - {f"e{q}"}))
        both = set(collection.get(where={"params.opt": "a"})["ids"])
        here = {e.id for e in sonde.search({"params.opt": "a"}, n_results=None)}
        os.environ["SONDE_DIR"] = ".other"
        back = sonde.from_chroma(collection)
        e = sonde.search("id = e7")[0]
        print(json.dumps([sent, same, both == here, back, e.params, e.metrics, e["document"],
                          e["duration_s"] > 0]))
        """,
    )
    sent, same, equal, back, params, metrics, document, duration = answer
    assert sent == back == 200 and equal is True and duration is True
    assert same >= 48  # of 50: distances may tie, and HNSW is approximate
    assert set(params) == {"lr", "opt", "amp"} and isinstance(params["amp"], bool)
    assert set(metrics) == {"accuracy"} and document == "number 7"


def test_from_mlflow(tmp_path):
    answer = python(
        tmp_path,
        """
        import json, mlflow, sonde
        from mlflow.tracking import MlflowClient
        uri = "file:./mlruns"
        client = MlflowClient(tracking_uri=uri)
        experiment = client.create_experiment("exp")
        for i in range(3):
            run = client.create_run(experiment, run_name=f"run {i}", tags={"team": "x"})
            client.log_param(run.info.run_id, "lr", 0.1 * i)
            client.log_param(run.info.run_id, "opt", "adam")
            client.log_param(run.info.run_id, "amp", True)
            for step in range(4):
                client.log_metric(run.info.run_id, "loss", 1.0 / (step + 1 + i), step=step)
            client.set_terminated(run.info.run_id)
        count = sonde.from_mlflow(uri)
        again = sonde.from_mlflow(uri, experiment_names=["none"])
        try:
            sonde.from_mlflow("file:./mlrums")
        except FileNotFoundError as error:
            again = str(error) if again == 0 else again
        found = sonde.search("params.lr > 0.15")
        e = found[0]
        print(json.dumps([count, again, len(found), e["name"], e.params, e.metrics, e.tags]))
        """,
    )
    count, again, matched, name, params, metrics, tags = answer
    assert count == 3 and "./mlrums" in again and matched == 1 and name == "run 2"
    assert params == {"lr": 0.2, "opt": "adam", "amp": True}
    assert metrics["loss"] == pytest.approx(1 / 6) and tags["team"] == "x"
