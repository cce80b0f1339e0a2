"""Children of every kind record into the same run."""


def test_forked_and_spawned_children_join_the_run(run):
    answer = run(
        """
        import multiprocessing, sonde
        @sonde.profile
        def work(n):
            with sonde.zone("inside"):
                return n * n
        def main():
            with sonde.zone("parent"):
                for method in ("fork", "spawn", "forkserver"):
                    with multiprocessing.get_context(method).Pool(2) as pool:
                        assert pool.map(work, range(6)) == [n * n for n in range(6)]
                        pool.close()
                        pool.join()
        if __name__ == "__main__":
            main()
        """
    )
    counts = {}
    for o in answer["operations"]:
        counts[o["name"]] = counts.get(o["name"], 0) + o["count"]
    assert counts["inside"] == 18 and counts["work"] == 18 and counts["parent"] == 1
    assert len(answer["processes"]) >= 4


def test_a_fork_inside_a_zone_leaves_the_child_clean(run):
    answer = run(
        """
        import os, sonde
        with sonde.zone("parent"):
            child = os.fork()
            if child == 0:
                with sonde.zone("child"):
                    pass
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
        """
    )
    assert answer.paths()[("parent",)] == 1
    assert sum(o["count"] for o in answer.operations("child")) == 1


def test_a_fork_inside_a_session_leaves_the_session_to_the_parent(tmp_path):
    from conftest import python

    script = tmp_path / "s.py"
    script.write_text(
        """
import os, sonde
with sonde.session(output="run", monitor_interval=0.05) as session:
    with sonde.zone("parent"):
        pass
    child = os.fork()
    if child == 0:
        assert sonde.current_session() is None
        with sonde.zone("child"):
            pass
        with sonde.operation("op"):
            pass
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
names = {o["name"] for o in session.report().operations}
assert {"parent", "child", "op"} <= names, names
"""
    )
    python(script, cwd=tmp_path)


def test_a_killed_program_keeps_what_it_recorded(run):
    answer = run(
        """
        import os, signal, sonde
        for i in range(100):
            with sonde.zone("done"):
                pass
        with sonde.zone("open"):
            os.kill(os.getpid(), signal.SIGKILL)
        """,
        check=False,
    )
    assert answer.one("done")["count"] == 100
    assert answer.one("open")["truncated"] == 1


def test_exit_status_and_output_are_the_programs_own(run):
    answer = run("import sonde, sys; print('out'); sys.exit(3)", check=False)
    assert answer["run"]["exit"]["code"] == 3 and answer.stdout == "out\n"
