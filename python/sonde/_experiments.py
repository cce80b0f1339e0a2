"""Experiments: log them, find them again.

    sonde.log(params={"lr": 1e-3}, metrics={"accuracy": 0.93}, duration_s=12)

    with sonde.campaign() as campaign:  # thousands of small ones
        for candidate in search_space:
            campaign.log(params=candidate, metrics=evaluate(candidate))

    for e in sonde.search("metrics.accuracy >= 0.9", max_duration=600, sort="efficiency"):
        print(e.id, e.params, e.metrics)

Everything goes through the `sonde` command; nothing is decided here.
"""

from __future__ import annotations

import json
import math
import subprocess
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Union

from . import _command

Where = Union[str, Mapping[str, Any], None]


class Experiment(Dict[str, Any]):
    """One experiment of the store: a dictionary with a few names made handy."""

    @property
    def id(self) -> str:
        return str(self["id"])

    @property
    def params(self) -> Dict[str, Any]:
        return self.get("params") or {}

    @property
    def metrics(self) -> Dict[str, Any]:
        return {k: _number(v) for k, v in (self.get("metrics") or {}).items()}

    @property
    def tags(self) -> Dict[str, Any]:
        return self.get("tags") or {}

    @property
    def similarity(self) -> Optional[float]:
        """1 is equal in all that counts; None unless `like` was given."""
        return self.get("similarity")


def _number(value: Any) -> Any:
    """Metrics that JSON has no number for arrive as texts."""
    return float(value) if value in ("NaN", "Infinity", "-Infinity") else value


def _plain(value: Any) -> Any:
    """What JSON can say; numpy's and torch's scalars become Python's."""
    if isinstance(value, float) and not math.isfinite(value):
        return (
            "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        )
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    item = getattr(value, "item", None)
    return _plain(item()) if callable(item) else str(value)


def _line(fields: Mapping[str, Any]) -> str:
    kept = {k: _plain(v) for k, v in fields.items() if v is not None}
    return json.dumps(kept, ensure_ascii=False, allow_nan=False)


def _fields(
    params: Optional[Mapping[str, Any]] = None,
    metrics: Optional[Mapping[str, Any]] = None,
    tags: Optional[Mapping[str, Any]] = None,
    *,
    name: Optional[str] = None,
    id: Optional[str] = None,
    duration_s: Optional[float] = None,
    memory_peak_mb: Optional[float] = None,
    document: Optional[str] = None,
    series: Optional[Mapping[str, Any]] = None,
    parent: Optional[str] = None,
    started: Union[str, float, None] = None,
    **core: Any,
) -> Dict[str, Any]:
    named = {
        "id": id,
        "name": name,
        "parent": parent,
        "document": document,
        "started": started,
        "duration_s": duration_s,
        "memory_peak_mb": memory_peak_mb,
        "params": params,
        "metrics": metrics,
        "tags": tags,
        "series": series,
    }
    return {**named, **core}


class Campaign:
    """A pipe into `sonde log --jsonl -`; see campaign()."""

    def __init__(self, replace: bool = False) -> None:
        words = [_command.command(), "log", "--jsonl", "-", "--quiet"]
        self._process = subprocess.Popen(
            words + (["--replace"] if replace else []),
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env=_command._environment(),
        )
        self.count = 0

    def log(self, *args: Any, **fields: Any) -> None:
        """One experiment; the arguments of sonde.log()."""
        self.log_fields(_fields(*args, **fields))

    def log_fields(self, fields: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(_line(fields) + "\n")
        except BrokenPipeError:
            self.close()
            raise
        self.count += 1

    def close(self) -> None:
        """Wait until everything is in the store; CommandError when something is not."""
        if self._process.stdin is None or self._process.stdin.closed:
            return
        _, message = self._process.communicate()
        if self._process.returncode != 0:
            raise _command.CommandError(f"sonde log: {message.strip()}")

    def __enter__(self) -> "Campaign":
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()


def campaign(replace: bool = False) -> Campaign:
    """Many experiments through one process: tens of thousands a second."""
    return Campaign(replace)


def log(*args: Any, replace: bool = False, **fields: Any) -> str:
    """Remember one experiment and return its id.

    log(params, metrics, tags, *, name, id, duration_s, memory_peak_mb, document,
    series={"loss": [[step, value], …]}, parent, started, and any other core field)
    """
    values = _fields(*args, **fields)
    if values.get("id") is None:
        import secrets

        values["id"] = secrets.token_hex(8)
    with campaign(replace) as one:
        one.log_fields(values)
    return str(values["id"])


def log_many(experiments: Iterable[Mapping[str, Any]], replace: bool = False) -> int:
    """Dictionaries with params, metrics, tags …; returns how many there were."""
    with campaign(replace) as many:
        for fields in experiments:
            many.log_fields(fields)
    return many.count


def _filter_words(where: Where, where_document: Where) -> List[str]:
    words: List[str] = []
    for option, condition in (
        ("--where", where),
        ("--where-document", where_document),
    ):
        if condition is not None:
            text = condition if isinstance(condition, str) else json.dumps(condition)
            words += [option, text]
    return words


def search(
    where: Where = None,
    *,
    where_document: Where = None,
    max_duration: Optional[float] = None,
    max_memory_mb: Optional[float] = None,
    min_efficiency: Optional[float] = None,
    like: Union[str, Mapping[str, Any], None] = None,
    explain: bool = False,
    sort: Optional[str] = None,
    ascending: bool = False,
    n_results: Optional[int] = 10,
    vectors: bool = False,
) -> List[Experiment]:
    """Experiments that fit, newest, largest (`sort`) or most alike (`like`) first.

    `where` is a condition ("metrics.accuracy >= 0.9 and params.batch = 32") or Chroma's
    dictionary; several keys in it mean AND. `like` is a run, an id, or a dictionary as for
    log(). n_results=None gives all.
    """
    words = ["search", "--json", *_filter_words(where, where_document)]
    if like is not None:
        words += ["--like", like if isinstance(like, str) else _line(like)]
    for option, value in (
        ("--max-duration", None if max_duration is None else f"{max_duration}s"),
        ("--max-memory", None if max_memory_mb is None else f"{max_memory_mb}MB"),
        ("--min-efficiency", min_efficiency),
        ("--sort", sort),
        ("--limit", n_results),
    ):
        if value is not None:
            words += [option, str(value)]
    flags = {
        "--explain": explain,
        "--ascending": ascending,
        "--vectors": vectors,
        "--all": n_results is None,
    }
    words += [option for option, wanted in flags.items() if wanted]
    answer = json.loads(_command.ask(*words))
    return [Experiment(e) for e in answer["experiments"]]


def each_experiment(where: Where = None) -> Iterator[Experiment]:
    """All that fit, for those who do not want them at once in a list."""
    yield from search(where, n_results=None)


def export_experiments(
    path: Union[str, Path], where: Where = None, format: Optional[str] = None
) -> Path:
    """Write all that fit as CSV or JSON, by the file's suffix unless `format` says."""
    target = Path(path)
    chosen = format or ("json" if target.suffix == ".json" else "csv")
    words = ["search", "--all", "--format", chosen, "--output", str(target)]
    _command.ask(*words, *_filter_words(where, None))
    return target
