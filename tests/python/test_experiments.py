"""log, campaigns, search, export: through the command, into a store of its own."""

import csv
import json
import math
import sqlite3

import pytest

import sonde


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("SONDE_DIR", str(tmp_path / ".sonde"))
    return tmp_path


def test_what_is_logged_is_found():
    first = sonde.log({"lr": 1e-3, "opt": "adam"}, {"accuracy": 0.93}, {"team": "x"},
                      duration_s=12, memory_peak_mb=100, name="one")  # fmt: skip
    sonde.log(params={"lr": 0.1}, metrics={"accuracy": float("nan")}, series={"loss": [[1, 0.5], [2, 0.25]]})
    [found] = sonde.search("metrics.accuracy >= 0.9 and params.opt = adam")
    assert found.id == first and found["name"] == "one"
    assert found.params == {"lr": 1e-3, "opt": "adam"} and found.metrics == {"accuracy": 0.93}
    assert found["efficiency"] == pytest.approx(0.93 / 1200)
    other = sonde.search({"params.lr": {"$gt": 0.01}})[0]
    assert math.isnan(other.metrics["accuracy"])
    assert sonde.search("params.lr > 5") == []


def test_a_campaign_of_many(store):
    with sonde.campaign() as campaign:
        for i in range(500):
            campaign.log(params={"i": i, "layer": {"width": 2 * i}}, metrics={"score": i / 500})
    assert campaign.count == 500
    best = sonde.search(sort="metrics.score", n_results=3)
    assert [e.params["i"] for e in best] == [499, 498, 497]
    assert best[0].params["layer.width"] == 998
    assert len(sonde.search(n_results=None)) == 500
    assert sonde.log_many({"params": {"i": -1}} for _ in range(3)) == 3


def test_likeness_and_limits():
    for i in range(10):
        sonde.log({"lr": i / 10, "opt": "ab"[i % 2]}, id=f"e{i}", duration_s=i + 1, memory_peak_mb=50)
    alike = sonde.search(like="e4", n_results=2, explain=True)
    assert {e.id for e in alike} == {"e2", "e6"} and 0 < alike[0].similarity < 1
    assert {w["name"] for w in alike[0]["why"]} >= {"params.lr", "params.opt"}
    assert sonde.search(like={"params": {"lr": 0.4, "opt": "a"}})[0].id == "e4"
    assert {e.id for e in sonde.search(max_duration=2)} == {"e0", "e1"}
    assert sonde.search(max_memory_mb=10) == []


def test_several_top_level_keys_mean_and():
    sonde.log({"a": 1, "b": 1}, id="x")
    sonde.log({"a": 1, "b": 2}, id="y")
    assert [e.id for e in sonde.search({"params.a": 1, "params.b": 2})] == ["y"]
    sonde.log({"a": 3}, id="z", document="wide resnet")
    assert [e.id for e in sonde.search(where_document={"$contains": "resnet"})] == ["z"]


def test_mistakes_are_told():
    with pytest.raises(sonde.CommandError, match="already"):
        sonde.log({"a": 1}, id="x")
        sonde.log({"a": 2}, id="x")
    sonde.log({"a": 2}, id="x", replace=True)
    with pytest.raises(sonde.CommandError, match="not a number"):
        sonde.log(metrics={"accuracy": "good"})
    with pytest.raises(sonde.CommandError, match="character"):
        sonde.search("params.a >")


def test_export(store):
    sonde.log({"lr": 0.5}, {"accuracy": 0.9}, duration_s=10, memory_peak_mb=100, id="x")
    path = sonde.export_experiments(store / "all.csv")
    with open(path, newline="") as file:
        [row] = csv.DictReader(file)
    assert row["experiment_id"] == "x" and float(row["accuracy"]) == 0.9
    assert json.loads(row["parameters"]) == {"lr": 0.5} and row["gpu_memory_peak_mb"] == ""
    data = json.loads(sonde.export_experiments(store / "all.json").read_text())
    assert data["experiments"][0]["id"] == "x"


def test_metrics_of_a_session_arrive_in_the_store_as_series(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with sonde.session(name="course"):
        for epoch in range(20):
            sonde.step()
            sonde.metric("val_loss", 1.0 / (epoch + 1))
            sonde.counter("seen", 32 * epoch)
    found = sonde.search("metrics.val_loss > 0")
    assert len(found) == 1
    with sqlite3.connect(tmp_path / ".sonde" / "sonde.db") as db:
        query = "SELECT step, value FROM metric_points WHERE key = ? ORDER BY step"
        assert db.execute(query, ["val_loss"]).fetchall() == [(i + 1, 1 / (i + 1)) for i in range(20)]
        assert [v for _, v in db.execute(query, ["seen"])] == [32 * i for i in range(20)]
