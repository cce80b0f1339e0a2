"""One recorder per process, however many copies of the library it carries."""

import pytest
from sonde_test import BUILD, assert_consistent, counts_by_path, program, run, traces

SHARED, STATIC = "visit_so.so", "visit_static.so"


@pytest.mark.parametrize(
    "libraries",
    [[SHARED], [STATIC], [SHARED, STATIC], [STATIC, SHARED]],
    ids=lambda libraries: " then ".join(libraries),
)
@pytest.mark.parametrize("times", [10, 20_000], ids=["few", "many"])
def test_zones_of_all_copies_nest_in_one_another_in_one_file(tmp_path, libraries, times):
    paths = [program(library) for library in libraries]
    done = run(tmp_path / "run", program("copies"), times, *paths)
    answer = done.report()

    path, expected = ("host",), {("host",): 2 * times}
    for library in libraries:
        visit = f"visit {library.removeprefix('visit_').removesuffix('.so')}"
        for name in (visit, "host"):
            path += (name,)
            expected[path] = 2 * times  # the main thread and another one
    assert dict(counts_by_path(answer)) == expected
    assert len(traces(done.directory)) == 1
    assert answer["summary"]["lost"] == 0
    assert_consistent(answer)


def test_nothing_is_recorded_by_any_copy_without_a_session(tmp_path):
    import subprocess

    from sonde_test import environment

    libraries = [program(SHARED), program(STATIC)]
    done = subprocess.run(
        [program("copies"), "1000", *libraries],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif("san" in BUILD.name, reason="a sanitizer wants to be preloaded first")
def test_a_preloaded_copy_a_static_one_and_a_shared_one_are_one_recorder(tmp_path):
    preload = f"LD_PRELOAD={program(STATIC)}"
    command = ["/usr/bin/env", preload, program("copies"), 1000, program(SHARED), program(STATIC)]
    done = run(tmp_path / "run", *command)
    answer = done.report()
    counts = counts_by_path(answer)
    assert counts[("host", "visit so", "host", "visit static", "host")] == 2000
    assert len(traces(done.directory)) == 1
    assert_consistent(answer)
