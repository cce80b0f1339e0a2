"""Zones: with, begin and end, what they record and what they leave alone."""

import gc
import json
import pickle
import subprocess
import threading

import pytest
from conftest import SONDE, environment

import sonde


def test_a_zone_appears_in_the_report_with_phase_component_and_tags(run):
    answer = run(
        """
        import sonde
        for i in range(3):
            sonde.step(samples=4)
            with sonde.zone("outer", phase="forward", component="c", category="k", team="x"):
                with sonde.zone("inner"):
                    sonde.value("batch", i)
        """
    )
    outer = answer.one("outer")
    assert (outer["count"], outer["phase"], outer["component"]) == (3, "forward", "c")
    assert outer["category"] == "k" and outer["tags"] == {"team": "x"}
    assert answer.paths()[("outer", "inner")] == 3
    assert answer.one("inner")["custom"]["batch"]["sum"] == 3
    assert answer["summary"]["step_ms"]["count"] in (2, 3)
    assert answer.balanced()


def test_zones_nest_in_themselves_and_are_one_object_per_name(run):
    answer = run(
        """
        import sonde
        z = sonde.zone("x")
        assert sonde.zone("x") is z
        def down(n):
            with z:
                if n: down(n - 1)
        down(3)
        """
    )
    assert answer.paths() == {("x",) * n: 1 for n in range(1, 5)}


def test_begin_and_end_pair_by_order_by_name_and_by_object(run):
    answer = run(
        """
        import sonde
        sonde.begin("a"); sonde.begin("b"); sonde.end(); sonde.end()
        z = sonde.begin("c", phase="backward"); sonde.end(z)
        sonde.begin("d"); sonde.end("d")
        sonde.end()  # nothing was begun: nothing happens
        """
    )
    assert answer.paths() == {("a",): 1, ("a", "b"): 1, ("c",): 1, ("d",): 1}
    assert answer.balanced()


def test_exceptions_pass_unchanged_and_the_zone_ends(run):
    answer = run(
        """
        import sonde
        error = ValueError("mine")
        try:
            with sonde.zone("fails"):
                raise error
        except ValueError as caught:
            assert caught is error and caught.__context__ is None
        with sonde.zone("after"):
            pass
        """
    )
    assert answer.paths() == {("fails",): 1, ("after",): 1}


def test_values_metrics_marks_tags_and_params_reach_the_run(run):
    answer = run(
        """
        import sonde
        sonde.metric("loss", 2.0); sonde.metric("loss", 1.5)
        sonde.counter("queue", 7); sonde.mark("epoch 1")
        sonde.tag("team", "x"); sonde.param("batch", 32)
        """
    )
    assert answer["run"]["metrics"]["loss"] == 1.5
    assert answer["run"]["tags"] == {"team": "x"} and answer["run"]["params"] == {
        "batch": "32"
    }
    assert answer["counters"]["queue"]["last"] == 7


def test_threads_have_stacks_of_their_own(run):
    answer = run(
        """
        import threading, sonde
        gate = threading.Barrier(4)
        def work(i):
            sonde.thread_name(f"worker {i}")
            with sonde.zone("outer"):
                gate.wait()
                for _ in range(100):
                    with sonde.zone(f"inner {i}"):
                        pass
                gate.wait()
        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for t in threads: t.start()
        for t in threads: t.join()
        """
    )
    expected = {("outer",): 4, **{("outer", f"inner {i}"): 100 for i in range(4)}}
    assert answer.paths() == expected and answer.balanced()


def test_threads_are_called_what_python_calls_them(run, tmp_path):
    run(
        """
        import _thread, threading, time, sonde
        done = threading.Event()
        def work():
            with sonde.zone("x"):
                done.wait()
        thread = threading.Thread(target=work, name="loader 7")
        thread.start()
        _thread.start_new_thread(work, ())  # Python has no name for it
        time.sleep(0.1)
        assert len(threading._active) == 2
        done.set()
        thread.join()
        """
    )
    words = [str(SONDE), "export", str(tmp_path / "run0"), "--format", "chrome"]
    out = tmp_path / "trace.json"
    subprocess.run([*words, "-o", str(out)], check=True, env=environment())
    events = json.loads(out.read_text())
    events = events["traceEvents"] if isinstance(events, dict) else events
    names = {e["args"]["name"] for e in events if e.get("name") == "thread_name"}
    assert any("loader 7" in name for name in names), names


def test_pausing_inside_a_zone_leaves_nothing_open(run):
    answer = run(
        """
        import sonde
        with sonde.zone("seen"):
            sonde.pause()
            with sonde.zone("unseen"):
                pass
        sonde.resume()
        with sonde.zone("again"):
            pass
        """
    )
    assert answer.paths() == {("seen",): 1, ("again",): 1} and answer.balanced()


def test_one_zone_can_be_switched_off(run):
    answer = run(
        """
        import sonde
        z = sonde.zone("z")
        with z: pass
        z.enable(False)
        with z: pass
        z.enable(True)
        with z: pass
        """
    )
    assert answer.one("z")["count"] == 2


def test_without_a_session_everything_works_and_nothing_is_recorded():
    assert not sonde.recording()
    with sonde.zone("x") as z:
        assert z.name == "x"
    sonde.begin("y")
    sonde.end()
    sonde.step()
    sonde.metric("m", 1)
    assert sonde.lost() == 0


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="no phase 'fowrard'.*forward"):
        sonde.zone("x", phase="fowrard")
    with pytest.raises(TypeError, match="name"):
        sonde.zone()
    with pytest.raises(TypeError, match="name"):
        sonde.zone(3)
    with pytest.raises(TypeError, match="component"):
        sonde.zone("x", component=3)
    with pytest.raises(TypeError, match="sonde.zone"):
        sonde.Zone()


def test_zones_survive_pickling_and_show_what_they_are():
    z = sonde.zone("p", phase="forward", component="c", category="k", a="1")
    again = pickle.loads(pickle.dumps(z))
    assert (again.name, again.phase, again.component) == ("p", "forward", "c")
    assert (again.category, again.tags) == ("k", "a=1")
    assert repr(z) == "sonde.zone('p', phase='forward')"


def test_more_names_than_are_cached_still_work(run):
    answer = run(
        """
        import sonde
        for i in range(5000):
            with sonde.zone(f"name {i}"):
                pass
        with sonde.zone("name 4999"):
            pass
        """
    )
    total = sum(o["count"] for o in answer["operations"])
    assert total == 5001


def test_the_collector_finds_every_zone_sound():
    zones = [sonde.zone(f"gc {i}") for i in range(50)]
    profiled = [sonde.profile(lambda: None) for _ in range(50)]
    gc.collect()
    assert len(gc.get_objects()) > 100
    for z, p in zip(zones, profiled):
        with z:
            p()
    del profiled
    gc.collect()


def test_a_zone_may_be_shared_by_threads_without_a_session():
    z, problems = sonde.zone("shared"), []

    def work():
        try:
            for _ in range(2000):
                with z:
                    pass
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not problems


def test_end_by_name_ends_the_innermost_begun_zone_of_that_name(run):
    answer = run(
        """
        import asyncio, sonde
        sonde.begin("load", "data_loading"); sonde.begin("load", "forward", team="x")
        sonde.end("load"); sonde.end("load")
        sonde.begin("plain"); sonde.end("plain")
        async def task(phase, seconds):
            sonde.begin("x", phase); await asyncio.sleep(seconds); sonde.end("x")
        async def main():
            await asyncio.gather(task("backward", 0.01), task("optimizer", 0.05))
        asyncio.run(main())
        with sonde.zone("after"): pass
        """
    )
    assert answer.paths()[("load",)] == answer.paths()[("load", "load")] == 1
    assert answer.paths()[("plain",)] == answer.paths()[("after",)] == 1
    assert all(o["truncated"] == 0 for o in answer["operations"]) and answer.balanced()
    times = {o["phase"]: o["total_s"] for o in answer.operations("x")}
    assert times["backward"] < times["optimizer"]


def test_tags_that_are_cut_are_told(run):
    answer = run(
        """
        import sonde
        many = {f"tag_number_{i:03}": f"value_{i:03}" for i in range(100)}
        with sonde.zone("few", **dict(list(many.items())[:40])): pass
        with sonde.zone("many", **many): pass
        """
    )
    assert len(answer.one("few")["tags"]) == 40
    assert 40 < len(answer.one("many")["tags"]) < 100
    assert answer["summary"]["texts_cut"] == 1
    assert any("tags of zones" in note and "were cut" in note for note in answer["notes"])


def test_commas_in_tags_stay_in_them(run):
    answer = run(
        """
        import pickle, sonde
        with pickle.loads(pickle.dumps(sonde.zone("z", y="a,b", path="c\\\\d,e"))): pass
        with sonde.operation("o", y="a,b=c"): pass
        """
    )
    assert answer.one("z")["tags"] == {"y": "a,b", "path": "c\\d,e"}
    assert answer.one("o")["tags"] == {"y": "a,b=c"}
