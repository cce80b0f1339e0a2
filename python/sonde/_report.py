"""sonde.Report: the answer of `sonde report --json` as an object."""

from __future__ import annotations

import csv
import html
import io
import json
import tempfile
from pathlib import Path
from typing import Any, Optional, Union

from . import _command

PathLike = Union[str, Path]


def _write(text: str, path: Optional[PathLike]) -> str:
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text


class Report:
    """What a run was: phases, operations, bottlenecks, recommendations.

    report = sonde.Report.of("@last")
    for b in report.bottlenecks:
        print(b["severity"], b["description"])
    report.to_csv("operations.csv")
    """

    def __init__(self, data: dict[str, Any], source: Optional[str] = None) -> None:
        if data.get("schema") != "sonde.report/1":
            raise ValueError(f"not a sonde report (schema {data.get('schema')!r})")
        self._data = data
        self._source = source
        self._loaded = False  # from a file that somebody saved, not from a run
        self._kept = True  # the run is still there
        self._limits: tuple[int, float, float] = (10, 0.001, 1.0)

    @classmethod
    def of(cls, run: PathLike = "@last") -> "Report":
        """The report of a run: a directory, an id, a name, or @last."""
        text = _command.ask("report", run, "--json")
        try:
            return cls(json.loads(text), str(run))
        except json.JSONDecodeError as error:
            raise _command.CommandError(f"no report of {run}: {error}") from error

    @classmethod
    def load(cls, path: PathLike) -> "Report":
        """A report saved by to_json()."""
        report = cls(json.loads(Path(path).read_text(encoding="utf-8")), str(path))
        report._loaded = True
        return report

    # ---- parts ----

    def __getitem__(self, key: str) -> Any:
        return self._data[key]

    @property
    def run(self) -> dict[str, Any]:
        found: dict[str, Any] = self._data["run"]
        return found

    @property
    def summary(self) -> dict[str, Any]:
        found: dict[str, Any] = self._data["summary"]
        return found

    @property
    def verdict(self) -> Optional[str]:
        return self.summary.get("verdict")

    @property
    def phases(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._data["phases"]
        return found

    @property
    def operations(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._data["operations"]
        return found

    @property
    def bottlenecks(self) -> list[dict[str, Any]]:
        """Findings with severity, evidence and recommendation, worst first."""
        return self._data.get("bottlenecks") or []

    @property
    def recommendations(self) -> list[str]:
        return self._data.get("recommendations") or []

    @property
    def metrics(self) -> dict[str, Any]:
        return self.run.get("metrics") or {}

    @property
    def detailed_metrics(self) -> dict[str, dict[str, Any]]:
        """By name over all paths: calls, calls per second, total and average seconds."""
        found: dict[str, dict[str, Any]] = {}
        spans = {o["name"] for o in self.operations if o.get("kind") == "span"}
        for o in self.operations:
            if o.get("category") == "generator" and o["name"] in spans:
                continue  # the stretches of the span of the same name
            m = found.setdefault(
                o["name"], {"count": 0, "total_s": 0.0, "calls_per_s": 0.0}
            )
            m["count"] += o["count"]
            m["total_s"] += o["total_s"] or 0.0
            m["calls_per_s"] += o["calls_per_s"] or 0.0
        for m in found.values():
            m["average_s"] = m["total_s"] / m["count"] if m["count"] else None
        return found

    @property
    def bottleneck_functions(self) -> list[dict[str, Any]]:
        """Operations by self time, within the limits of the Config (depth, least time or
        memory)."""
        depth, time_s, memory_mb = self._limits

        def grown(o: dict[str, Any]) -> float:
            before, peak = o.get("mem_before_mb"), o.get("mem_peak_mb")
            return 0.0 if before is None or peak is None else peak - before

        hot = [
            o
            for o in self.operations
            if len(o["path"]) <= depth
            and ((o["self_s"] or 0.0) >= time_s or grown(o) >= memory_mb)
        ]
        return sorted(hot, key=lambda o: -(o["self_s"] or 0.0))

    def operation(self, name: str) -> dict[str, Any]:
        """The operation of this name with the most time; KeyError without."""
        found = [o for o in self.operations if o["name"] == name]
        if not found:
            raise KeyError(f"no operation {name!r} in this run")
        return max(found, key=lambda o: o["total_s"] or 0.0)

    # ---- forms ----

    def to_dict(self) -> dict[str, Any]:
        return self._data

    def to_json(self, path: Optional[PathLike] = None, indent: int = 2) -> str:
        return _write(
            json.dumps(self._data, indent=indent, ensure_ascii=False) + "\n", path
        )

    def to_csv(self, path: Optional[PathLike] = None) -> str:
        """The operations, one row per call path."""
        columns = (
            [k for k in self.operations[0] if k != "custom"] if self.operations else []
        )
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        for o in self.operations:
            writer.writerow(_cell(o.get(c)) for c in columns)
        return _write(text.getvalue(), path)

    def to_html(self, path: Optional[PathLike] = None) -> str:
        """The report as one self-contained page: charts, timeline, flame graphs. It is
        made by the command from the run; CommandError when that cannot."""
        return self._made("report", "html", path).decode("utf-8")

    def export(
        self,
        format: str,
        path: Optional[PathLike] = None,
        what: Optional[str] = None,
    ) -> bytes:
        """The run in a form of other tools, as `sonde export` writes it: timelines
        (chrome), stacks (folded, speedscope, pprof) and more, see formats(). `what`
        chooses a part where a format can hold several ("zones", "python", "stacks" …).

            report.export("speedscope", "profile.speedscope.json", what="python")
        """
        known = self.formats()
        if format not in known:
            raise ValueError(
                f"sonde export has no format {format!r}; it has {', '.join(known)}"
            )
        return self._made("export", format, path, *(["--what", what] if what else []))

    @staticmethod
    def formats() -> dict[str, str]:
        """What export() can write: names, and what each is."""
        lines = _command.ask("export", "--list").splitlines()
        pairs = (line.strip().partition(" ") for line in lines if line.strip())
        return {
            name: text.strip() for name, _, text in pairs if not name.startswith("-")
        }

    def _made(
        self, verb: str, format: str, path: Optional[PathLike], *more: str
    ) -> bytes:
        """What the command writes for the run this report was read from."""
        self._check_run()
        with tempfile.TemporaryDirectory(prefix="sonde-") as folder:
            target = Path(folder) / "out" if path is None else Path(path)
            _command.ask(verb, self._source, "--format", format, "-o", target, *more)
            return target.read_bytes()

    def _check_run(self) -> None:
        if self._source is None or self._loaded:
            raise ValueError(
                "this report was read from a file; html and exports are made from the "
                "run itself: sonde.Report.of(run)"
            )
        if not self._kept:
            raise ValueError(
                "the run was not kept (save_profiles=False); html, text and exports are "
                "made from the run itself: set save_profiles=True"
            )

    def to_pandas(self) -> Any:
        """The operations as a pandas.DataFrame."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError("to_pandas() needs pandas: pip install pandas") from error
        return pandas.DataFrame(self.operations)

    def text(self, full: bool = False) -> str:
        """The report as `sonde report` prints it."""
        self._check_run()
        more = ["--full"] if full else []
        return _command.ask("report", self._source, "--no-color", *more)

    def _repr_html_(self) -> str:
        """For notebooks: verdict, phases, the operations that took longest."""
        phases = [
            (p["phase"], _seconds(p["total_s"]), _share(p["share"]))
            for p in self.phases
        ]
        top = sorted(self.operations, key=lambda o: -(o["total_s"] or 0.0))[:12]
        rows = [
            (
                " › ".join(o["path"]),
                o["count"],
                _seconds(o["total_s"]),
                _seconds(o["self_s"]),
            )
            for o in top
        ]
        head = html.escape(str(self.verdict or "Sonde report"))
        found = "".join(
            f"<li><b>{html.escape(b['severity'])}</b> {html.escape(b['description'])}"
            f"<br>{html.escape(b.get('recommendation') or '')}</li>"
            for b in self.bottlenecks
        )
        return (
            f"<div><b>{head}</b>"
            + (f"<ul>{found}</ul>" if found else "")
            + _table(("phase", "time", "share"), phases)
            + _table(("operation", "calls", "total", "self"), rows)
            + "</div>"
        )

    def __repr__(self) -> str:
        return f"<sonde.Report {self.run.get('id')} {self.verdict!r}>"


def _cell(value: Any) -> Any:
    if isinstance(value, list):
        return " > ".join(map(str, value))
    return json.dumps(value) if isinstance(value, dict) else value


def _seconds(value: Optional[float]) -> str:
    if value is None:
        return "–"
    return f"{value:.2f} s" if value >= 1 else f"{value * 1e3:.2f} ms"


def _share(value: Optional[float]) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"


def _table(head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    def line(cells: tuple[Any, ...], tag: str) -> str:
        return "".join(f"<{tag}>{html.escape(str(c))}</{tag}>" for c in cells)

    body = "".join(f"<tr>{line(row, 'td')}</tr>" for row in rows)
    return f"<table><tr>{line(head, 'th')}</tr>{body}</table>"
