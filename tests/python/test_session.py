"""Sessions without `sonde run`, the switches they obey, and the reports they give."""

import csv
import io
import json
import logging
import os
import textwrap
import threading
import time
from pathlib import Path

import pytest
from conftest import python

import sonde


@pytest.fixture(autouse=True)
def own_store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    yield
    current = sonde.current_session()
    if current is not None:
        current.stop()


def names(report):
    return {o["name"] for o in report.operations}


def train(steps=3):
    for _ in range(steps):
        sonde.step(samples=8)
        with sonde.zone("load", phase="data_loading"):
            time.sleep(0.002)
        with sonde.zone("forward", phase="forward"):
            time.sleep(0.002)
        with sonde.zone("backward", phase="backward"):
            pass


def test_a_session_records_and_reports():
    with sonde.session(name="baseline") as session:
        assert sonde.current_session() is session and sonde.recording()
        train()
    assert not sonde.recording() and sonde.current_session() is None
    report = session.report()
    assert report.run["name"] == "baseline"
    assert names(report) >= {"load", "forward", "backward"}
    assert report.operation("load")["count"] == 3
    assert {p["phase"] for p in report.phases} >= {"data_loading", "forward"}
    assert report.detailed_metrics["load"]["count"] == 3
    assert (session.directory / "report.json").exists()
    assert (session.directory / "operations.csv").exists()
    assert "baseline" in str(sonde.Report.of("baseline").run)


def test_sessions_follow_each_other_but_do_not_overlap():
    with sonde.session():
        with pytest.raises(sonde.SessionError, match="active"):
            sonde.session().start()
        train(1)
    with sonde.session() as second:
        train(2)
    assert second.report().operation("load")["count"] == 2


def test_switched_off_it_records_nothing_and_disturbs_nothing():
    for switch in ("enable_profiling", "enabled"):
        with sonde.session(**{switch: False}) as session:
            assert not sonde.recording()
            train(1)
        with pytest.raises(sonde.SessionError, match="switched off"):
            session.report()


def test_SONDE_DISABLE_wins(monkeypatch):
    monkeypatch.setenv("SONDE_DISABLE", "1")
    with sonde.session() as session:
        assert not sonde.recording()
    assert session.directory is None


@pytest.mark.parametrize(
    "switch, phase",
    [
        ("profile_data_loading", "data_loading"),
        ("profile_preprocessing", "preprocessing"),
        ("profile_augmentation", "augmentation"),
        ("profile_collate", "collate"),
        ("profile_forward_pass", "forward"),
        ("profile_backward_pass", "backward"),
        ("profile_optimizer_step", "optimizer"),
        ("profile_gradient_computation", "gradient"),
    ],
)
def test_phases_are_switched_off_one_by_one(switch, phase):
    with sonde.zone(f"known {phase}", phase=phase):
        pass
    with sonde.session(**{switch: False}) as session:
        for one in sonde.PHASES:
            for name in ("known", "new"):
                with sonde.zone(f"{name} {one}", phase=one):
                    pass
    seen = names(session.report())
    assert f"known {phase}" not in seen and f"new {phase}" not in seen
    assert len(seen) == 2 * len(sonde.PHASES) - 2
    with sonde.session() as session, sonde.zone(f"known {phase}", phase=phase):
        pass
    assert f"known {phase}" in names(session.report())


def test_a_zone_the_user_switched_off_stays_off():
    z = sonde.zone("mine", phase="forward")
    z.enable(False)
    with sonde.session(profile_backward_pass=False) as session:
        with z, sonde.zone("other", phase="forward"):
            pass
    assert names(session.report()) == {"other"}
    z.enable(True)


def test_a_session_that_is_never_stopped_reports_at_exit(tmp_path):
    from conftest import python

    python(
        "-c",
        "import sonde; sonde.session(output='run').start()\nwith sonde.zone('z'): pass",
        cwd=tmp_path,
    )
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert [o["name"] for o in report["operations"]] == ["z"]


def test_levels_reach_the_recorder():
    for level in ("basic", "detailed", "comprehensive"):
        with sonde.session(profile_level=level) as session:
            pass
        assert session.report().run["level"] == level


def test_profiles_are_saved_where_told_or_not_at_all(tmp_path):
    with sonde.session(profile_dir=tmp_path / "here", export_to_csv=False) as session:
        train(1)
    assert session.directory.parent == tmp_path / "here"
    assert not (session.directory / "operations.csv").exists()
    assert (session.directory / "report.json").exists()
    with sonde.session(save_profiles=False) as session:
        train(1)
    assert session.report().operation("load")["count"] == 1
    assert not session.directory.exists()
    with sonde.session(generate_reports=False) as session:
        train(1)
    assert not (session.directory / "report.json").exists()
    assert session.report().operation("load")["count"] == 1


def test_monitors_sample_what_they_are_told():
    fast = {"monitor_interval": 0.02, "memory_interval": 0.02, "system_interval": 0.02}
    with sonde.session(track_io=False, **fast) as session:
        data = session.monitor.data
        end = time.monotonic() + 60
        while len(data.get("memory_rss_mb", ())) < 6 and time.monotonic() < end:
            time.sleep(0.05)
    assert {"memory_rss_mb", "cpu_percent", "system_memory_percent"} <= set(data)
    assert not any(name.startswith("io_") for name in data)
    assert len(data["memory_rss_mb"]) >= 5
    assert session.monitor.current()["memory_rss_mb"] > 1
    assert session.report()["counters"]["memory_rss_mb"]["count"] >= 5
    with sonde.session(enable_performance_monitoring=False) as session:
        pass
    assert session.monitor is None
    with sonde.session(track_memory=False, **fast) as session:
        time.sleep(0.1)
    assert "memory_rss_mb" not in session.monitor.data


def test_current_values_at_any_time():
    sonde.current_stats()
    time.sleep(0.1)
    stats = sonde.current_stats()
    assert stats.rss_mb > 1 and 0 < stats.memory_percent < 100
    assert 0 <= stats.cpu_percent and 0 <= stats.system_cpu_percent <= 100
    assert stats.disk_io_percent is None or 0 <= stats.disk_io_percent <= 100
    assert stats.gpu_memory_mb is None


def test_snapshots_alerts_and_the_users_logger(caplog):
    alerts = []
    log = logging.getLogger("mine")
    with caplog.at_level(logging.INFO, "mine"):
        with sonde.session(
            alert_threshold=0.01, log_memory_usage=True, logger=log
        ) as session:
            session.add_alert_callback(
                lambda text, record: alerts.append((text, record))
            )
            session.add_alert_callback(lambda text, record: 1 / 0)
            with sonde.operation("slow"):
                time.sleep(0.02)
            with sonde.operation("quick"):
                pass
    assert [a[1]["name"] for a in alerts] == ["slow"]
    assert [s[1] for s in session.snapshots] == ["slow", "quick"]
    assert any("slow" in r.message for r in caplog.records)
    with sonde.session(memory_snapshots=False) as session, sonde.operation("x"):
        pass
    assert session.snapshots == []


def test_reports_have_many_forms(tmp_path):
    with sonde.session() as session:
        train()
    report = session.report()
    assert json.loads(report.to_json(tmp_path / "r.json")) == report.to_dict()
    assert sonde.Report.load(tmp_path / "r.json").to_dict() == report.to_dict()
    rows = list(csv.DictReader(io.StringIO(report.to_csv())))
    assert len(rows) == len(report.operations) and rows[0]["count"] == "3"
    assert "<table>" in report._repr_html_() and "load" in report._repr_html_()
    assert "data_loading" in report.text()
    assert report.bottlenecks == (report["bottlenecks"] or [])
    assert isinstance(report.recommendations, list)
    with pytest.raises(ValueError, match="schema"):
        sonde.Report({})
    hot = report.bottleneck_functions
    assert hot and all(o["self_s"] >= 0.001 for o in hot)


def test_reports_become_pandas_frames():
    pytest.importorskip("pandas")
    with sonde.session() as session:
        train()
    frame = session.report().to_pandas()
    assert set(frame["name"]) >= {"load", "forward"}


def test_a_missing_run_and_a_missing_command_say_what_to_do(monkeypatch):
    with pytest.raises(sonde.CommandError, match="nowhere"):
        sonde.Report.of("nowhere")
    monkeypatch.setenv("SONDE_COMMAND", "/nowhere/sonde")
    with pytest.raises(sonde.CommandError, match="/nowhere/sonde"):
        sonde.Report.of("@last")


def test_under_sonde_run_a_session_joins(run):
    answer = run(
        """
        import sonde
        with sonde.session(name="inner", profile_forward_pass=False) as session:
            assert session.joined
            with sonde.zone("seen"): pass
            with sonde.zone("unseen", phase="forward"): pass
        with sonde.zone("after", phase="forward"): pass
        assert sonde.recording()
        """
    )
    assert set(answer.paths()) == {("seen",), ("after",)}


def test_windows_of_steps():
    with sonde.session(steps=(3, 5)) as session:
        train(8)
    assert session.report().operation("load")["count"] == 2


def test_an_interrupt_while_a_session_ends_leaves_nothing_recording(tmp_path):
    script = """
        import sonde
        from sonde import _companion
        first = sonde.session(output="first").start()
        def interrupted(self): raise KeyboardInterrupt
        kept, _companion.Companion.stop = _companion.Companion.stop, interrupted
        try:
            first.stop()
            raise SystemExit("not interrupted")
        except KeyboardInterrupt:
            pass
        _companion.Companion.stop = kept
        assert not sonde.recording() and sonde.current_session() is None
        first.stop()
        with sonde.session(output="second") as second:
            with sonde.zone("z"): pass
        assert not second.joined and second.report().operation("z")["count"] == 1
    """
    python("-c", textwrap.dedent(script), cwd=tmp_path)


def test_a_program_that_closes_all_files_ends_its_session(tmp_path):
    script = """
        import os, sonde
        with sonde.session(output="run"):
            os.closerange(3, 256)
            mine = [os.open(f"mine{i}", os.O_WRONLY | os.O_CREAT) for i in range(9)]
        assert not any(os.path.getsize(f"mine{i}") for i in range(9))
    """
    python("-c", textwrap.dedent(script), cwd=tmp_path)


@pytest.mark.parametrize("limit", [4096, 256])
def test_numbers_that_the_program_took_over_stay_open(tmp_path, limit):
    """The program closes everything and uses the numbers of all that Sonde had open."""
    script = f"""
        import os, resource, sonde, time
        resource.setrlimit(resource.RLIMIT_NOFILE, ({limit}, {limit}))
        open_now = lambda: {{int(n) for n in os.listdir("/proc/self/fd")}}
        before = open_now()
        with sonde.session(output="run"):
            with sonde.zone("z"): pass
            # Those that are kept: whoever takes the number of a file that is being read just
            # then has lost, as it would to any thread.
            ours = open_now() - before
            for _ in range(40):
                time.sleep(0.01)
                ours &= open_now()
            os.closerange(3, {limit})
            mine = os.open("mine", os.O_RDWR | os.O_CREAT)
            for n in ours - {{mine}}: os.dup2(mine, n)
        same = [n for n in ours if os.path.samefile(f"/proc/self/fd/{{n}}", "mine")]
        assert ours and len(same) == len(ours), (ours, same)
        assert os.path.getsize("mine") == 0
    """
    python("-c", textwrap.dedent(script), cwd=tmp_path)


def test_mistakes_of_a_session_are_said_clearly():
    with pytest.raises(ValueError, match=r"steps=5\).*first, end"):
        sonde.session(steps=5)
    with pytest.raises(TypeError, match="after=.*'1s'"):
        sonde.session(after="1s")
    with pytest.raises(sonde.SessionError, match="not started"):
        sonde.session().report()


def test_a_forked_child_warns_of_nothing(tmp_path):
    script = """
        import gc, os, sonde
        with sonde.session(output="run"):
            child = os.fork()
            if child == 0:
                gc.collect()
                os._exit(0)
            os.waitpid(child, 0)
        sonde.integrations, sonde.optimize
    """
    done = python("-X", "dev", "-c", textwrap.dedent(script), cwd=tmp_path)
    assert "ResourceWarning" not in done.stderr


def test_what_the_program_did_before_is_not_the_sessions():
    room = b"x" * (200 << 20)
    del room
    begin = time.process_time()
    while time.process_time() - begin < 1:
        pass
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    held_mb = pages * os.sysconf("SC_PAGE_SIZE") / 2**20
    with sonde.session(track_carbon=True, monitor_interval=0.1) as session:
        time.sleep(0.5)
    report = session.report().to_dict()
    program = report["processes"][0]
    assert program["cpu_s"] < 0.5
    assert program["peak_rss_mb"] < held_mb + 100
    assert program["read_mb"] < 50


def test_nobody_knows_how_a_program_ends_whose_session_was_stopped():
    with pytest.raises(ZeroDivisionError), sonde.session() as session:
        1 / 0
    run = session.report().run
    assert run["exit"] == {"code": None, "signal": None, "cause": None}
    assert run["state"] == "session"
    assert "exit 0" not in session.report().text()


def forward_only(steps=20, pause_at=None):
    for i in range(steps):
        if i == pause_at:
            sonde.pause()
            time.sleep(0.5)
            sonde.resume()
        sonde.step()
        with sonde.zone("f", phase="forward"):
            time.sleep(0.02)


@pytest.mark.parametrize(
    "options, pause_at",
    [({"steps": (8, 12)}, None), ({"after": 0.2}, None), ({"duration": 0.1}, None), ({}, 5)],
)
def test_time_that_was_not_recorded_is_in_no_phase(options, pause_at):
    with sonde.session(**options) as session:
        forward_only(pause_at=pause_at)
    report = session.report().to_dict()
    share = {p["phase"]: p["share"] for p in report["phases"]}
    assert share["forward"] > 0.3  # a loaded machine sleeps long (0.39 seen); it was 0.2
    assert report["summary"]["unrecorded_s"] > 0.1
    assert any("not recorded" in note for note in report["notes"])


def address_space_mb():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) / 256


def test_sessions_do_not_use_up_the_address_space():
    stop = threading.Event()

    def keep_zoning():
        while not stop.is_set():
            with sonde.zone("straggler"):
                pass

    threads = [threading.Thread(target=keep_zoning) for _ in range(2)]
    for thread in threads:
        thread.start()
    sizes = []
    for i in range(12):
        with sonde.session(
            generate_reports=i == 11,
            enable_line_profiling=False,
        ) as session:
            time.sleep(0.01)
        sizes.append(address_space_mb())
    stop.set()
    for thread in threads:
        thread.join()
    assert sizes[-1] - sizes[2] < 500  # it was 1 GiB each
    assert session.report().operation("straggler")["count"] > 0
