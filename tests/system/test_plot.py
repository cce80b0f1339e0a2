"""`sonde plot`: five pictures, well-formed, with what the report says in them."""

import re
import shutil
import struct
import xml.etree.ElementTree as tree

import pytest
from sonde_test import environment, report, run, sonde

KINDS = ["times", "memory", "calls", "bottlenecks"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    place = tmp_path_factory.mktemp("plot")
    made = []
    for name, steps in (("short", 30), ("long", 60)):
        sonde("demo", "--quiet", "--steps", steps, "--name", name, "-o", place / name)
        made.append(place / name)
    return made


def picture(*arguments):
    text = sonde("plot", *arguments).stdout
    root = tree.fromstring(text)
    assert root.tag.endswith("svg")
    height = float(root.get("height"))
    for element in root.iter():
        assert element.tag.split("}")[1] in ("svg", "rect", "line", "text", "path")
        for key in ("y", "y1", "y2"):
            assert -1 <= float(element.get(key, 0)) <= height, "outside of the picture"
        assert float(element.get("width", 1).rstrip("%") if isinstance(element.get("width"), str) else 1) >= 0
    return root, [e.text or "" for e in root.iter() if e.tag.endswith("text")]


def test_each_kind_is_a_picture_of_the_run(runs):
    answer = report(runs[1])
    for kind in KINDS:
        root, words = picture(runs[1], "--kind", kind)
        assert any(answer["run"]["id"] in w for w in words)
        if kind == "bottlenecks" and not answer["bottlenecks"]:
            continue  # it says so, and that is all
        assert len(list(root.iter())) > 8


def test_the_numbers_are_the_reports(runs):
    answer = report(runs[1])
    _, words = picture(runs[1], "--kind", "calls")
    most = max(answer["operations"], key=lambda o: o["count"])
    assert most["name"] in words
    assert any(w.startswith(f"{most['count']:,} ") for w in words)
    _, words = picture(runs[1], "--kind", "bottlenecks")
    assert sum(w.endswith("not checkable in this run") for w in words) == 1
    _, words = picture(runs[1], "--kind", "times")
    assert f"{answer['summary']['step_ms']['count']} of them" in words


def test_bottlenecks_are_findings_with_what_is_at_stake(tmp_path):
    """A program that waits for its data: named, with its severity and seconds."""
    sick = tmp_path / "run"
    sonde("demo", "--quiet", "--steps", 60, "-o", sick)
    answer = report(sick)
    _, words = picture(sick, "--kind", "bottlenecks")
    assert answer["run"]["id"] in " ".join(words)
    if not answer["bottlenecks"]:  # a machine quick enough for it
        assert any(w.startswith("No finding") for w in words)
    for finding in answer["bottlenecks"][:10]:
        assert finding["id"] in words and finding["severity"] in words
        if finding["predicted_gain"] is not None:
            share = f"{finding['stake'] * 100:.1f} %"
            assert any(w.startswith(share) and w.endswith("s") for w in words), finding


def test_runs_stand_side_by_side(runs):
    root, words = picture(*runs, "--kind", "compare")
    assert {"short", "long"} <= set(words)
    assert sum("a step" in w for w in words) == 2


def test_names_that_want_to_be_markup_are_text(tmp_path):
    script = tmp_path / "evil.sh"
    script.write_text("true\n")
    made = run(tmp_path / "run", "sh", script, "<script>alert(1)</script>&\x01\u202e")
    done = sonde("plot", made.directory, "--kind", "memory", check=False)
    if done.returncode == 0:
        tree.fromstring(done.stdout)
        assert "<script" not in done.stdout
    else:
        assert "nothing for a picture" in done.stderr


def test_png_when_a_converter_is_there_and_an_honest_word_when_not(runs, tmp_path):
    if shutil.which("rsvg-convert"):
        sonde("plot", runs[0], "--kind", "times", "-o", tmp_path / "a.png", "--width", 640)
        head = (tmp_path / "a.png").read_bytes()[:24]
        assert head[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">I", head[16:20])[0] == 640
        assert not (tmp_path / "a.png.svg").exists()
    empty = tmp_path / "empty"
    empty.mkdir()
    done = sonde("plot", runs[0], "-o", tmp_path / "b.png", check=False, env=environment(PATH=str(empty)))
    assert done.returncode == 2 and "rsvg-convert" in done.stderr
    assert (tmp_path / "b.png.svg").exists() and not (tmp_path / "b.png").exists()


def test_mistakes_are_told(runs):
    wrong = sonde("plot", runs[0], "--kind", "pie", check=False)
    assert wrong.returncode == 2 and re.search("times, memory, calls, bottlenecks, compare", wrong.stderr)
    two = sonde("plot", *runs, "--kind", "times", check=False)
    assert two.returncode == 2 and "at most 1 run" in two.stderr
