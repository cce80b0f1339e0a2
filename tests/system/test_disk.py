"""No space, no permission, no directory: the program never notices, the user is told."""

import os
import resource
import subprocess

import pytest
from sonde_test import (
    SONDE,
    counts_by_name,
    disk_bytes,
    environment,
    program,
    report,
    sonde,
)

MIB = 1 << 20
ZONES, THREADS = 2_000_000, 4
PATIENCE = 20  # seconds; unwatched the program takes some milliseconds


@pytest.fixture(scope="module")
def truth():
    """What the program says when nobody watches."""
    command = [program("disk_writer"), str(ZONES), str(THREADS)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment())
    assert done.returncode == 7
    return done.stdout


def run_writer(*options, limit=(), **more):
    command = ["run", *options, "--", program("disk_writer"), ZONES, THREADS, *limit]
    return sonde(*command, check=False, timeout=PATIENCE, **more)


def assert_unharmed(done, truth):
    assert done.stdout == truth
    assert done.returncode == 7


def assert_told(done, directory):
    """The report gives every zone, or it or stderr says what is missing."""
    missing = "the run has no report"
    if directory.exists():
        answer = sonde("report", directory, "--json", check=False)
        if answer.returncode == 0:
            counted = report(directory)
            lost = counted["summary"]["lost"] or 0
            if counts_by_name(counted)["write"] == ZONES and lost == 0:
                return
            missing = f"{counts_by_name(counted)['write']} of {ZONES} zones, lost {lost}"
            text = sonde("report", directory).stdout
            if lost > 0 or "not recorded" in text or "space" in text:
                return
    words = ("space", "limit", "not recorded", "cannot profile")
    told = done.stderr.lower()
    assert any(w in told for w in words), f"{missing}, and nobody says why: {told!r}"


SIZES = [0, 4096, 65536, MIB, 2 * MIB, 4 * MIB, 16 * MIB, 64 * MIB]


@pytest.mark.parametrize("size", SIZES)
def test_a_file_size_limit_of_the_program_does_not_kill_it(tmp_path, truth, size):
    done = run_writer("-o", tmp_path / "run", limit=[size])
    assert_unharmed(done, truth)
    assert_told(done, tmp_path / "run")


@pytest.mark.parametrize("size", SIZES)
def test_a_file_size_limit_of_everybody_does_no_harm(tmp_path, truth, size):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    done = run_writer("-o", tmp_path / "run", preexec_fn=limit)
    assert_unharmed(done, truth)
    assert_told(done, tmp_path / "run")


@pytest.fixture
def mounted(tmp_path):
    """Mounts a tmpfs with these options; unmounts it afterwards."""
    places = []

    def mount(options):
        place = tmp_path / f"mnt{len(places)}"
        place.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", options, "none", place]
        if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode != 0:
            pytest.skip("mounting a tmpfs needs root")
        places.append(place)
        return place

    yield mount
    for place in places:
        subprocess.run(["umount", "-l", place], check=True)


@pytest.mark.parametrize("size", ["64k", "512k", "1m", "2m", "4m", "16m"])
def test_a_disk_that_fills_up_does_no_harm(mounted, truth, size):
    place = mounted(f"size={size}")
    done = run_writer("-o", place / "run")
    assert_unharmed(done, truth)
    assert_told(done, place / "run")


def test_a_disk_filled_by_somebody_else_does_no_harm(mounted, truth):
    place = mounted("size=32m")
    (place / "filler").write_bytes(bytes(28 * MIB))
    done = run_writer("-o", place / "run")
    assert_unharmed(done, truth)
    assert_told(done, place / "run")


def test_no_inodes_left_does_no_harm(mounted, truth):
    place = mounted("size=32m,nr_inodes=4")
    done = run_writer("-o", place / "run")
    assert_unharmed(done, truth)
    assert_told(done, place / "run")


@pytest.mark.parametrize("place", ["/proc/sonde-run", "/dev/null/run", "/sys/run"])
def test_a_place_that_cannot_be_written_does_no_harm(tmp_path, truth, place):
    done = run_writer("-o", place, cwd=tmp_path)
    assert_unharmed(done, truth)
    assert_told(done, tmp_path / "nowhere")


def test_a_read_only_working_directory_does_no_harm(mounted, truth):
    place = mounted("size=1m,ro")
    done = run_writer(cwd=place)
    assert_unharmed(done, truth)
    assert_told(done, place / ".sonde")


def test_a_store_that_is_a_file_does_no_harm(tmp_path, truth):
    (tmp_path / "store").write_text("not a directory")
    done = run_writer(env=environment(SONDE_DIR=tmp_path / "store"), cwd=tmp_path)
    assert_unharmed(done, truth)
    assert_told(done, tmp_path / "nowhere")


def test_another_user_s_directory_does_no_harm(tmp_path, truth):
    if os.geteuid() != 0:
        pytest.skip("becoming another user needs root")
    nobody = 65534
    probe = subprocess.run(
        [SONDE, "--version"], user=nobody, group=nobody, capture_output=True, check=False
    )
    if probe.returncode != 0:
        pytest.skip("the build is not readable for other users")
    place = tmp_path / "locked"
    place.mkdir(mode=0o755)
    for parent in (tmp_path, *tmp_path.parents[:3]):
        if parent.stat().st_uid == 0 and str(parent).count("/") > 1:
            parent.chmod(0o755)
    done = run_writer(cwd=place, user=nobody, group=nobody)
    assert_unharmed(done, truth)
    assert_told(done, place / ".sonde")


@pytest.mark.parametrize("size", ["2MiB", "4MiB", "16MiB", "64MiB"])
def test_the_disk_a_run_may_use_bounds_it_and_no_count_is_lost(tmp_path, truth, size):
    done = run_writer("--max-trace", size, "-o", tmp_path / "run")
    assert_unharmed(done, truth)
    answer = report(tmp_path / "run")
    assert counts_by_name(answer)["write"] + (answer["summary"]["lost"] or 0) // 2 >= ZONES
    assert disk_bytes(tmp_path / "run") <= int(size.removesuffix("MiB")) * MIB + 2 * MIB
