"""Bridges: experiments to and from ChromaDB, and from MLflow.

    sonde.to_chroma(collection)             # with Sonde's vectors: the same neighbours
    sonde.from_chroma(collection)
    sonde.from_mlflow("file:./mlruns")      # or a server's address

The packages are the caller's; none is needed to import Sonde.
"""

from __future__ import annotations

import os
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple
from urllib.parse import unquote, urlparse

from ._experiments import Experiment, Where, _number, log_many, search

_KINDS = ("params", "metrics", "tags")
_BATCH = 1000


def _metadata(e: Experiment) -> Dict[str, Any]:
    """One flat dictionary, as Chroma wants it: "params.lr", "metrics.accuracy" …"""
    flat: Dict[str, Any] = {}
    for kind in _KINDS:
        for key, value in (e.get(kind) or {}).items():
            value = _number(value) if kind == "metrics" else value
            if isinstance(value, (str, int, float, bool)):
                flat[f"{kind}.{key}"] = value
    for key, value in e.items():
        if key not in (*_KINDS, "id", "document", "series", "vector", "similarity"):
            if isinstance(value, (str, int, float, bool)):
                flat[key] = value
    return flat


def _batches(items: List[Any]) -> Iterator[List[Any]]:
    for start in range(0, len(items), _BATCH):
        yield items[start : start + _BATCH]


def to_chroma(collection: Any, where: Where = None) -> int:
    """Put experiments into a Chroma collection; returns how many.

    Make the collection with l2 distance (`configuration={"hnsw": {"space": "l2"}}`) and
    its neighbours are those of `sonde search --like`.
    """
    experiments = search(where, n_results=None, vectors=True)
    for batch in _batches(experiments):
        collection.upsert(
            ids=[e.id for e in batch],
            embeddings=[[float(x) for x in e["vector"]] for e in batch],
            metadatas=[_metadata(e) for e in batch],
            documents=[e.get("document") or e.get("command") or "" for e in batch],
        )
    return len(experiments)


def _split(key: str) -> Tuple[str, str]:
    kind, _, name = key.partition(".")
    return (kind, name) if kind in _KINDS and name else ("", key)


_CORE = {
    "duration": "duration_s",
    "duration_s": "duration_s",
    "memory_peak_mb": "memory_peak_mb",
    "gpu_memory_peak_mb": "gpu_memory_peak_mb",
    "energy_j": "energy_j",
    "step_ms": "step_ms",
    "samples_per_s": "samples_per_s",
}
_TEXTS = ("name", "command", "cause", "parent", "started")


def _from_metadata(
    id: str, metadata: Optional[Dict[str, Any]], document: Optional[str]
) -> Dict[str, Any]:
    """Keys with a kind before them go there; others are parameters."""
    fields: Dict[str, Any] = {"id": id, "params": {}, "metrics": {}, "tags": {}}
    for key, value in (metadata or {}).items():
        kind, name = _split(key)
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if kind == "metrics" and not number:
            kind, name = "tags", key
        if kind:
            fields[kind][name] = value
        elif key in _CORE and number:
            fields[_CORE[key]] = value
        elif key in _TEXTS and isinstance(value, str) and value:
            fields[key] = value
        elif key not in ("kind", "exit_code", "efficiency", "accuracy_per_s"):
            fields["params"][key] = value
    if document:
        fields["document"] = document
    return fields


def from_chroma(collection: Any, replace: bool = True) -> int:
    """Take in a Chroma collection's metadata and documents; returns how many."""

    def each() -> Iterable[Dict[str, Any]]:
        offset = 0
        while True:
            page = collection.get(
                include=["metadatas", "documents"], limit=_BATCH, offset=offset
            )
            yield from (
                _from_metadata(i, m, d)
                for i, m, d in zip(page["ids"], page["metadatas"], page["documents"])
            )
            if len(page["ids"]) < _BATCH:
                return
            offset += _BATCH

    return log_many(each(), replace)


def _typed(text: str) -> Any:
    """MLflow keeps parameters as texts; numbers and truths come back."""
    if text in ("True", "true", "False", "false"):
        return text in ("True", "true")
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _from_run(client: Any, run: Any, history: bool) -> Dict[str, Any]:
    info, data = run.info, run.data
    tags = {k: v for k, v in data.tags.items() if not k.startswith("mlflow.")}
    fields: Dict[str, Any] = {
        "id": info.run_id,
        "name": data.tags.get("mlflow.runName") or None,
        "params": {k: _typed(v) for k, v in data.params.items()},
        "metrics": dict(data.metrics),
        "tags": {**tags, "mlflow_experiment": info.experiment_id},
        "document": data.tags.get("mlflow.note.content"),
        "started": info.start_time / 1000 if info.start_time else None,
    }
    if info.start_time and info.end_time:
        fields["duration_s"] = (info.end_time - info.start_time) / 1000
    if history:
        points = {
            key: [[m.step, m.value] for m in client.get_metric_history(info.run_id, key)]
            for key in data.metrics
        }
        fields["series"] = {k: p for k, p in points.items() if len(p) > 1} or None
    return fields


def _must_be_there(uri: Optional[str]) -> None:
    """MLflow makes a store that is not there, and a misspelt one has no runs."""
    if uri and uri.startswith("file:"):
        path = unquote(urlparse(uri).path)
    elif uri and "/" in uri and ":" not in uri:
        path = uri
    else:
        return  # a server, a database, or a word such as "databricks"
    if not os.path.isdir(path):
        raise FileNotFoundError(f"there is no MLflow store {path!r}")


def from_mlflow(
    tracking_uri: Optional[str] = None,
    experiment_names: Optional[List[str]] = None,
    history: bool = True,
    replace: bool = True,
) -> int:
    """Take in MLflow's runs with parameters, metrics (and their history), tags."""
    from mlflow.tracking import MlflowClient

    _must_be_there(tracking_uri)
    client = MlflowClient(tracking_uri=tracking_uri)
    wanted = [
        e.experiment_id
        for e in client.search_experiments()
        if experiment_names is None or e.name in experiment_names
    ]

    def each() -> Iterable[Dict[str, Any]]:
        token: Optional[str] = None
        while wanted:
            page = client.search_runs(wanted, max_results=_BATCH, page_token=token)
            for run in page:
                yield _from_run(client, run, history)
            token = page.token
            if not token:
                return

    return log_many(each(), replace)
