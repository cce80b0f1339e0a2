# labels: no_asan
# serial: yes
# timeout: 400
"""Merged stacks: Python functions and the native ones they called, in their order."""

import collections
import json
import os
import re

import pytest
import readers
from pythons import interpreters
from sonde_test import SOURCE, program, run, sonde

# Shares of a few thousand samples; what the supervisor sees depends on when it gets a core.
pytestmark = pytest.mark.flaky(reruns=2)

PROGRAM = SOURCE / "tests/system/progs/py_merged.py"
ALTERNATES = SOURCE / "tests/system/progs/py_alternates.py"
RATE = 499
COMPRESSES = re.compile(r"compress|deflate|libz\.|crc32|adler32")
HASHES = re.compile(r"pbkdf2|PBKDF2|libcrypto|SHA|EVP_|HMAC")


def line_of(path, word):
    text = path.read_text().splitlines()
    return next(i + 1 for i, line in enumerate(text) if line.endswith(f"# {word}"))


def folded(directory, *options):
    """Call paths without process and thread, the outermost first, and how often each."""
    paths = collections.Counter()
    text = sonde("export", directory, "--format", "folded", "-o", "-", *options).stdout
    for line in text.splitlines():
        path, count = line.rsplit(" ", 1)
        paths[tuple(path.split(";"))] += int(count)
    return paths


def name_of(frame):
    """`slow_key (py_merged.py:22)` → slow_key"""
    return re.sub(r" \([^()]*:\d+\)$", "", frame)


def merged_run(directory, *command, options=()):
    done = run(directory, *command, options=("--merge-stacks", "--rate", RATE, *options))
    answer = done.report()
    if answer["sampling"]["merged"] is None:
        pytest.skip("the kernel does not sample here")
    return done, answer


def total(paths, wanted):
    return sum(n for path, n in paths.items() if wanted(path))


def within(path, *names):
    """Whether the names are in the path, in this order."""
    rest = iter(map(name_of, path))
    return all(any(name == found for found in rest) for name in names)


@pytest.mark.parametrize("minor", interpreters())
def test_python_and_native_functions_are_one_stack(tmp_path, minor):
    done, answer = merged_run(tmp_path / "r", interpreters()[minor], PROGRAM, 6)
    merged, paths = answer["sampling"]["merged"], folded(tmp_path / "r")
    # Every sample is one of four kinds, and in the export.
    kinds = [merged[k] for k in ("whole", "partly", "unmerged", "native")]
    assert sum(kinds) == sum(paths.values()) == answer["sampling"]["samples"]
    # 0.3 to 0.6 on a quiet machine, where the program has gone on when it is looked at: a
    # sample whose callers cannot be told says so, and some are not looked at at this rate.
    assert merged["whole_share"] >= 0.2
    assert merged["exact"] <= merged["whole"]

    # Python → C → Python → C, with lines.
    file = PROGRAM.name
    key = f"slow_key ({file}:{line_of(PROGRAM, 'KEY')})"
    sort = f"sorting ({file}:{line_of(PROGRAM, 'SORT')})"
    hash_ = f"hashing ({file}:{line_of(PROGRAM, 'HASH')})"
    nested = [p for p in paths if sort in p and key in p]
    assert nested
    for path in nested:
        assert path.index(sort) < path.index(key)
        assert all(not COMPRESSES.search(f) for f in path[2 : path.index(key)])
    assert any(COMPRESSES.search(p[-1]) for p in nested)
    assert any(hash_ in p and HASHES.search(p[-1]) for p in paths)
    if any("builtin_sorted" in p for p in paths):  # an interpreter with its names
        assert total(paths, lambda p: within(p, "sorting", "builtin_sorted", "slow_key"))

    # Who is in Python has nothing of how the interpreter calls.
    for path in paths:
        if any(file in frame for frame in path):
            assert not any(f.startswith(("_PyEval_", "Py_BytesMain", "_start")) for f in path)

    # Recursion, frame by frame.
    deep = collections.Counter()
    for path, count in paths.items():
        names = [name_of(f) for f in path]
        if "dig" in names and "(unknown Python)" not in names and COMPRESSES.search(path[-1]):
            deep[names.count("dig")] += count
    assert set(deep) == {13}

    # Two threads, and nothing of the one in the other.
    assert total(paths, lambda p: within(p, "other", "other_hash"))
    assert not total(paths, lambda p: within(p, "main") and within(p, "other_hash"))

    # The program knows what it spent where.
    spent = json.loads(done.stdout)
    found = {n: total(paths, lambda p, n=n: within(p, "main", n)) for n in spent}
    # What is not known is left out: most of it is of the loop in Python, that moves on.
    native = [n for n in spent if n != "looping"]
    for name in native:
        assert found[name] / sum(found[n] for n in native) == pytest.approx(
            spent[name] / sum(spent[n] for n in native), abs=0.1
        )
    assert found["looping"] / sum(found.values()) <= spent["looping"] / sum(spent.values()) + 0.1
    # How many of those are known depends on how soon the supervisor gets a core; the others
    # must have been counted as not known.
    expected = found["hashing"] * spent["looping"] / spent["hashing"]
    assert found["looping"] > 0
    assert found["looping"] + merged["partly"] + merged["unmerged"] >= 0.8 * expected


@pytest.mark.parametrize("minor", interpreters())
def test_nobody_is_called_by_who_never_calls_it(tmp_path, minor):
    """The program has gone on when its frames are read: what cannot be known must not be
    said. One in a hundred is allowed, for a machine where reading takes its time."""
    _, answer = merged_run(tmp_path / "r", interpreters()[minor], ALTERNATES, 6)
    right = wrong = 0
    lines = {"hash": line_of(ALTERNATES, "HASH"), "zip": line_of(ALTERNATES, "ZIP")}
    for path, count in folded(tmp_path / "r").items():
        text = ";".join(path[2:])
        for ways, other, mine in (("hash", COMPRESSES, HASHES), ("zip", HASHES, COMPRESSES)):
            if re.search(rf"(via|key|sort)_{ways} ", text):
                wrong += count if other.search(text) else 0
                right += count if mine.search(text) else 0
            if f"work ({ALTERNATES.name}:{lines[ways]})" in text and other.search(text):
                wrong += count
    assert right >= 0.1 * answer["sampling"]["samples"]
    assert wrong <= max(2, 0.01 * right)


def test_without_the_flag_nothing_is_merged(tmp_path):
    python = next(iter(interpreters().values()))
    answer = run(tmp_path / "r", python, PROGRAM, 1).report()
    assert answer["sampling"]["merged"] is None
    refused = sonde(
        "export", tmp_path / "r", "--format", "folded", "--what", "merged", "-o", "-", check=False
    )
    assert refused.returncode == 2
    assert "--merge-stacks" in refused.stderr
    if answer["sampling"]["samples"]:
        assert not any(PROGRAM.name in f for path in folded(tmp_path / "r") for f in path)


def test_other_formats_have_them(tmp_path):
    python = list(interpreters().values())[-1]
    _, answer = merged_run(tmp_path / "r", python, PROGRAM, 2)
    document = json.loads(
        sonde(
            "export", tmp_path / "r", "--format", "speedscope", "--what", "merged", "-o", "-"
        ).stdout
    )
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(document, json.loads(readers.speedscope_schema().read_text()))
    samples = document["profiles"][0]
    assert samples["endValue"] == sum(samples["weights"]) == answer["sampling"]["samples"]
    frames = document["shared"]["frames"]
    key = [f for f in frames if f["name"].startswith("slow_key (")]
    assert [(f["file"], f["line"]) for f in key] == [(str(PROGRAM), line_of(PROGRAM, "KEY"))]
    stacks = [[frames[i]["name"] for i in stack] for stack in samples["samples"]]
    assert any(within(s, "main", "sorting", "slow_key") for s in stacks)
    # Of native stacks nothing has changed.
    native = folded(tmp_path / "r", "--what", "stacks")
    assert sum(native.values()) == answer["sampling"]["samples"]
    assert not any(PROGRAM.name in f for path in native for f in path)
    sonde("export", tmp_path / "r", "--format", "pprof", "-o", tmp_path / "p.pb.gz")


def test_a_program_without_python_stays_as_it_is(tmp_path):
    done = run(tmp_path / "r", program("hot_plain"), 1, options=("--merge-stacks", "--rate", RATE))
    answer = done.report()
    merged = answer["sampling"]["merged"]
    if merged is None:
        pytest.skip("the kernel does not sample here")
    assert merged["native"] == answer["sampling"]["samples"]
    assert merged["whole_share"] is None
    assert folded(tmp_path / "r") == folded(tmp_path / "r", "--what", "stacks")


def test_where_the_program_samples_itself_the_run_says_so(tmp_path):
    python = next(iter(interpreters().values()))
    env = {**os.environ, "SONDE_STACKS": "timer"}
    done = run(tmp_path / "r", python, PROGRAM, 1, options=("--merge-stacks",), env=env)
    answer = done.report()
    assert answer["sampling"]["merged"] is None
    assert any("not merged" in note for note in answer["notes"])


def test_a_python_nobody_knows_is_counted_as_such(tmp_path):
    old = [
        p
        for p in (os.path.expanduser(f"~/.pyenv/versions/{v}/bin/python3") for v in ("3.8.18",))
        if os.path.exists(p)
    ]
    if not old:
        pytest.skip("no Python 3.8 here")
    program_text = "import hashlib\nfor i in range(60): hashlib.pbkdf2_hmac('sha256', b'p', b's', 9000)\n"
    _, answer = merged_run(tmp_path / "r", old[0], "-c", program_text)
    merged = answer["sampling"]["merged"]
    assert merged["whole"] == merged["partly"] == 0
    assert merged["unknown_python"] > 0.8 * answer["sampling"]["samples"]
