"""sonde.Report: forms that the command makes from the run."""

import json
import time

import pytest

import sonde
from sonde import _command


def busy_work(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    directory = tmp_path_factory.mktemp("session") / "run"
    with sonde.session(output=directory, create_visualizations=False) as session:
        with sonde.zone("work", phase="forward"):
            busy_work(1.5)
    assert not (directory / "report.html").exists()
    return session.report()


def test_formats_are_listed_and_others_refused(report):
    assert {"chrome", "folded"} <= sonde.Report.formats().keys()
    with pytest.raises(ValueError, match="'gif'.*chrome"):
        report.export("gif")


def test_a_timeline(report, tmp_path):
    written = report.export("chrome", tmp_path / "trace.json")
    assert written == (tmp_path / "trace.json").read_bytes()
    events = json.loads(written)
    events = events["traceEvents"] if isinstance(events, dict) else events
    assert any(e.get("name") == "work" for e in events)


def need_samples(report):
    """The companion looks from outside; on a crowded machine it may come too late."""
    if not any(f["name"] == "busy_work" for f in report["functions"] or []):
        pytest.skip("no sample of busy_work was taken")


def test_folded_stacks_have_the_python_function(report):
    need_samples(report)
    if "speedscope" not in report.formats():
        pytest.skip("this command folds native stacks alone")
    lines = report.export("folded", what="python").decode().splitlines()
    named = [line for line in lines if "busy_work" in line]
    assert sum(int(line.rsplit(" ", 1)[1]) for line in named) > 0


def test_speedscope(report):
    need_samples(report)
    if "speedscope" not in report.formats():
        pytest.skip("this command has no speedscope")
    profile = json.loads(report.export("speedscope", what="python"))
    frames = [frame["name"] for frame in profile["shared"]["frames"]]
    assert any("busy_work" in name for name in frames)
    assert profile["profiles"]


def has_page():
    return "html" in _command.ask("report", "--help")


def test_the_page(report, tmp_path):
    if not has_page():
        with pytest.raises(sonde.CommandError, match="html"):
            report.to_html()
        return
    page = report.to_html(tmp_path / "r.html")
    assert page == (tmp_path / "r.html").read_text()
    assert page.lstrip().lower().startswith("<!doctype html") and "work" in page


def test_a_session_saves_its_page(tmp_path):
    if not has_page():
        pytest.skip("this command has no HTML report")
    with sonde.session(output=tmp_path / "run"):
        busy_work(0.01)
    assert (tmp_path / "run" / "report.html").stat().st_size > 1000


def test_a_saved_report_has_no_run_to_export_from(report, tmp_path):
    report.to_json(tmp_path / "r.json")
    saved = sonde.Report.load(tmp_path / "r.json")
    for call in (saved.to_html, saved.text, lambda: saved.export("chrome")):
        with pytest.raises(ValueError, match="Report.of"):
            call()


def test_findings_come_from_the_run(report):
    for finding in report.bottlenecks:
        assert {"id", "severity", "score", "description"} <= finding.keys()
    assert all(isinstance(line, str) for line in report.recommendations)
