"""Files and sockets: known bytes by every way to move them, and nothing breaks."""

import json
import os
import re
import shutil
import signal
import subprocess
import time

import pytest
from sonde_test import SONDE, environment, program, run, sonde, workload

SIZE = 1000003
BLOCKS = -(-SIZE // 4096)  # of 4 KiB
PIECES = -(-SIZE // 1000)

PRELOAD = SONDE.parent / "libsonde-preload.so"
pytestmark = pytest.mark.skipif(
    not PRELOAD.exists(), reason="no libsonde-preload.so (sanitised build)"
)


def content():
    """What known_io.c makes too: lines of 1 … 99 letters."""
    out, line = bytearray(), 1
    while len(out) < SIZE:
        room = min(line, SIZE - 1 - len(out))
        out += bytes(ord("a") + (line + i) % 26 for i in range(room)) + b"\n"
        line = line % 99 + 1
    return bytes(out)


INPUTS = (
    "read backwards seek pread readv dup zone mmap fread fread_item fgets getc "
    "getc_unlocked getline fscanf fseek sendfile copy leak fork threads"
).split()


def lay_out(directory, names=INPUTS):
    directory.mkdir()
    for name in names:
        (directory / f"input.{name}").write_bytes(content())


def file_named(answer, name):
    found = [f for f in answer["io"]["files"] if f["path"].endswith("/" + name)]
    assert len(found) == 1, f"{len(found)} rows end in /{name}"
    return found[0]


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    base = tmp_path_factory.mktemp("known")
    lay_out(base / "files")
    done = run(base / "run", workload("known_io"), base / "files")
    assert done.returncode == 0, done.stderr
    return done, done.report(), base / "files"


# ---- Bytes and calls ---------------------------------------------------------------------

# way: calls that moved bytes (None: stdio, refills are its own affair)
READ = {
    "read": BLOCKS,
    "backwards": PIECES,
    "seek": PIECES,
    "pread": PIECES,
    "readv": PIECES,
    "dup": BLOCKS,
    "zone": BLOCKS,
    "fork": BLOCKS,
    "fread": None,
    "fread_item": None,
    "fgets": None,
    "getc": None,
    "getc_unlocked": None,
    "getline": None,
    "fscanf": None,
    "copy": None,
    "sendfile": None,
}
WRITTEN = {
    "write": PIECES,
    "pwrite": 2,
    "writev": 1,
    "fwrite": None,
    "fputs": None,
    "fprintf": None,
    "fflush": None,
    "putc": None,
    "lines": None,
    "unflushed": None,
    "copy": None,
    "sendfile": None,
}


@pytest.mark.parametrize("way", READ)
def test_every_byte_read_is_counted(known, way):
    _, answer, _ = known
    found = file_named(answer, f"input.{way}")
    assert found["read_bytes"] == SIZE
    assert found["write_bytes"] == found["writes"] == 0
    assert found["class"] == "file" and found["read_errors"] == 0
    if READ[way] is not None:
        assert found["reads"] - found["read_sizes"]["0"] == READ[way]
    assert found["read_s"] > 0
    assert 0 < found["read_ms"]["p50"] <= found["read_ms"]["p95"]
    assert found["read_ms"]["p95"] <= found["read_ms"]["p99"]


@pytest.mark.parametrize("way", WRITTEN)
def test_every_byte_written_is_counted(known, way):
    _, answer, files = known
    assert (files / f"output.{way}").read_bytes() == content()
    found = file_named(answer, f"output.{way}")
    assert found["write_bytes"] == SIZE
    assert found["read_bytes"] == found["reads"] == 0
    if WRITTEN[way] is not None:
        assert found["writes"] == WRITTEN[way]
    if way == "write":
        assert found["syncs"] == 1 and found["sync_s"] > 0


def test_threads_reading_one_file_lose_nothing(known):
    found = file_named(known[1], "input.threads")
    assert found["read_bytes"] == 16 * SIZE
    assert found["reads"] == 16 * PIECES


def test_threads_printing_into_one_file_lose_nothing(known):
    assert (known[2] / "output.fprintf_threads").stat().st_size == 200000
    assert file_named(known[1], "output.fprintf_threads")["write_bytes"] == 200000


def test_sequential_and_random_are_told_apart(known):
    answer = known[1]
    for way in ("read", "pread", "readv", "fread", "fgets", "sendfile", "dup"):
        assert file_named(answer, f"input.{way}")["read_sequential_share"] == 1, way
    for way in ("backwards", "seek"):
        assert file_named(answer, f"input.{way}")["read_sequential_share"] == 0, way
    assert file_named(answer, "input.fseek")["read_sequential_share"] < 0.05


def test_seeks_of_a_file_read_blocks(known):
    found = file_named(known[1], "input.fseek")
    assert found["reads"] == pytest.approx(100, abs=2)
    assert found["read_bytes"] == pytest.approx(100 * 4096, rel=0.03)


def test_sizes_fall_into_classes(known):
    sizes = file_named(known[1], "input.read")["read_sizes"]
    assert sizes["<16Ki"] == BLOCKS - 1 and sizes["<512"] + sizes["<4Ki"] == 1
    assert sizes["0"] == 1  # the end of the file


def test_mapped_reads_are_modelled_to_the_kernels_grain(known):
    found = file_named(known[1], "input.mmap")
    assert found["reads"] == 0 and found["mapped_bytes"] == SIZE
    assert found["mapped_read_bytes"] == pytest.approx(SIZE / 2, abs=2 * 65536)
    methods = {p["metric"]: p["status"] for p in known[1]["provenance"]}
    assert methods["io.mapped_read_bytes"] == "modelled"
    assert methods["io"] == "measured"


def test_sockets_and_pipes(known):
    done, answer, _ = known
    port = re.search(r"port (\d+)", done.stdout).group(1)
    rows = {f["path"]: f for f in answer["io"]["files"]}
    client, server = rows[f"tcp 127.0.0.1:{port}"], rows[f"tcp from port {port}"]
    assert client["write_bytes"] == server["read_bytes"] == SIZE
    assert client["writes"] == PIECES and client["connects"] == 1
    assert client["class"] == server["class"] == "socket"
    assert rows["(sockets)"]["write_bytes"] == rows["(sockets)"]["read_bytes"] == SIZE
    printed = len(done.stdout)  # into a pipe of ours
    assert rows["(pipes)"]["write_bytes"] == SIZE + printed
    assert rows["(pipes)"]["read_bytes"] == SIZE
    assert rows["(pipes)"]["read_sequential_share"] is None


def test_bytes_belong_to_the_zone_that_moved_them(known):
    zones = {z["zone"]: z for z in known[1]["io"]["zones"]}
    assert zones["load"]["read_bytes"] == SIZE
    assert zones["load"]["reads"] == BLOCKS + 1
    assert zones["load"]["writes"] == 0


def test_descriptors_left_open_are_counted(known):
    answer = known[1]
    assert file_named(answer, "input.leak")["open_at_end"] == 40
    assert file_named(answer, "input.read")["open_at_end"] == 0
    # The one FILE left to exit() is the 41st.
    assert answer["io"]["descriptors"]["open_at_end"] == 41


def test_the_sum_is_the_kernels(known):
    io = known[1]["io"]
    assert io["coverage"] == pytest.approx(1, abs=0.001)
    assert io["coverage_why"] is None
    assert io["seen_bytes"] == pytest.approx(io["kernel_bytes"], rel=0.001)


def test_warm_files_are_said_to_be_warm(known):
    # Written a moment ago: in the page cache, whoever may look.
    assert file_named(known[1], "input.read")["warm_share"] == 1


def test_the_text_report_names_the_files(known):
    text = sonde("report", known[0].directory).stdout
    assert "I/O" in text
    # On one screen files give way to findings: a busy machine is one.
    assert "input.threads" in sonde("report", known[0].directory, "--full").stdout
    assert "41 descriptors were open at the end" in text
    assert "of the kernel's count seen" in text


# ---- Cold files --------------------------------------------------------------------------


def test_cold_files_are_said_to_be_cold(tmp_path):
    file = tmp_path / "cold"
    file.write_bytes(os.urandom(3 << 20))
    fd = os.open(file, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)
    answer = run(tmp_path / "run", "md5sum", file).report()
    warm = file_named(answer, "cold")["warm_share"]
    if warm == 1:
        pytest.skip("this file system keeps its pages whatever one says")
    assert warm < 0.1


# ---- Other languages ---------------------------------------------------------------------


def test_cpp_streams(tmp_path):
    if not os.path.exists(program("io_streams")):
        pytest.skip("no C++ compiler")
    lay_out(tmp_path / "files", ["cpp"])
    source, copy = tmp_path / "files/input.cpp", tmp_path / "files/copy"
    done = run(tmp_path / "run", program("io_streams"), source, copy)
    assert done.stdout == f"{SIZE}\n" and copy.read_bytes() == content()
    answer = done.report()
    assert file_named(answer, "input.cpp")["read_bytes"] == 2 * SIZE
    assert file_named(answer, "copy")["write_bytes"] == SIZE


def test_python(tmp_path):
    lay_out(tmp_path / "files", ["python"])
    file = tmp_path / "files/input.python"
    code = f"""
data = open({str(file)!r}, 'rb').read()
lines = sum(len(l) for l in open({str(file)!r}))
with open({str(file) + '.copy'!r}, 'w') as f:
    f.write(data.decode())
print(len(data), lines)
"""
    done = run(tmp_path / "run", "/usr/bin/python3", "-c", code)
    assert done.stdout.split() == [str(SIZE)] * 2
    answer = done.report()
    assert file_named(answer, "input.python")["read_bytes"] == 2 * SIZE
    assert file_named(answer, "input.python.copy")["write_bytes"] == SIZE
    assert answer["io"]["coverage"] > 0.97


# ---- Every event -------------------------------------------------------------------------


def test_every_event_is_kept_when_asked(tmp_path):
    lay_out(tmp_path / "files", ["read"])
    done = run(
        tmp_path / "run",
        workload("known_io"),
        tmp_path / "files",
        "read",
        options=["--trace=io"],
    )
    io = done.report()["io"]
    assert io["events"] >= BLOCKS + 1
    assert io["events_dropped"] == 0


def test_too_many_events_are_dropped_and_counted(tmp_path):
    code = "import os\nfd = os.open('/dev/zero', 0)\nfor _ in range(450000): os.read(fd, 1)"
    done = run(
        tmp_path / "run", "/usr/bin/python3", "-c", code, options=["--trace=io"]
    )
    io = done.report()["io"]
    assert io["events"] == 400000 or io["events_dropped"] > 0
    assert io["events"] + io["events_dropped"] >= 450000
    zero = [f for f in io["files"] if f["path"] == "/dev/zero"][0]
    assert zero["reads"] == zero["read_bytes"] == 450000


# ---- Killed, many files, secrets ---------------------------------------------------------


def test_what_a_killed_program_did_is_there(tmp_path):
    file = tmp_path / "data"
    file.write_bytes(bytes(10000))
    code = f"""
import os, time
fd = os.open({str(file)!r}, os.O_RDONLY)
for _ in range(50): os.pread(fd, 1000, 0)
time.sleep(0.2)
for _ in range(50): os.pread(fd, 1000, 0)
os.kill(os.getpid(), 9)
"""
    done = run(tmp_path / "run", "/usr/bin/python3", "-c", code, check=False)
    assert done.returncode == -signal.SIGKILL
    answer = done.report()
    assert file_named(answer, "data")["reads"] == 100
    assert file_named(answer, "data")["read_bytes"] == 100000
    assert file_named(answer, "data")["open_at_end"] == 1
    assert answer["io"]["coverage"] > 0.5  # taken a tenth of a second after the start


def test_paths_beyond_the_table_are_one_row(tmp_path):
    files = tmp_path / "many"
    files.mkdir()
    code = f"""
for i in range(3000):
    with open({str(files)!r} + f'/{{i}}', 'wb', buffering=0) as f: f.write(b'0123456789')
"""
    answer = run(tmp_path / "run", "/usr/bin/python3", "-c", code).report()
    io = answer["io"]
    rows = [f for f in io["files"] if "/many/" in f["path"] or f["path"][0] == "("]
    assert io["write"]["bytes"] >= 30000
    other = [f for f in io["files"] if f["path"] == "(other files)"]
    assert len(other) == 1 and other[0]["write_bytes"] >= 9000
    assert io["paths_beyond_limit"] > 900 and len(rows) <= 1000
    assert io["descriptors"]["open_at_end"] == 0


def test_relative_paths_follow_the_working_directory(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "data").write_text(name * 10)
    code = f"""
import os
for name in 'ab':
    os.chdir({str(tmp_path)!r} + '/' + name)
    open('data').read(), open('./data').read(), open('../' + name + '/data').read()
    d = os.open('.', os.O_RDONLY)
    os.read(os.open('data', os.O_RDONLY, dir_fd=d), 100)
"""
    answer = run(tmp_path / "run", "/usr/bin/python3", "-c", code).report()
    for name in ("a", "b"):
        assert file_named(answer, f"{name}/data")["read_bytes"] == 40


def test_shared_memory_is_one_row_and_no_file(tmp_path):
    """As torch's workers pass batches; a file below /dev/shm that is opened is a file."""
    done = run(
        tmp_path / "run",
        "/usr/bin/python3",
        "-c",
        """
import mmap, os, _posixshmem
for i in range(50):
    name = f"/sonde-test-{os.getpid()}-{i}"
    fd = _posixshmem.shm_open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode=0o600)
    _posixshmem.shm_unlink(name)
    os.ftruncate(fd, 65536)
    m = mmap.mmap(fd, 65536); m[:] = bytes(65536); m.close()
    os.close(fd)
path = f"/dev/shm/sonde-test-{os.getpid()}-file"
with open(path, "wb") as f: f.write(bytes(1000))
with open(path, "rb") as f: f.read()
os.unlink(path)
print(path)
""",
    )
    rows = {f["path"]: f for f in done.report()["io"]["files"]}
    memory = rows["(shared memory)"]
    assert memory["class"] == "other" and memory["mapped_bytes"] == 50 * 65536
    assert not memory["mapped_read_bytes"]
    assert [path for path in rows if "sonde-test" in path] == [done.stdout.strip()]
    assert rows[done.stdout.strip()]["read_bytes"] == 1000


def test_secrets_in_paths_are_redacted(tmp_path):
    secret = tmp_path / "api_key=sk-abcdefghijklmnopqrstuvwxyz123456"
    secret.write_text("x")
    hidden = run(tmp_path / "a", "cat", secret).report()
    assert "sk-abcdefghij" not in json.dumps(hidden["io"])
    for table in (tmp_path / "a").glob("*.tables"):
        assert b"sk-abcdefghij" not in table.read_bytes()
    shown = run(tmp_path / "b", "cat", secret, options=["--no-redact"]).report()
    assert "sk-abcdefghij" in json.dumps(shown["io"])


def test_without_the_library_there_is_nothing_and_it_is_said(tmp_path):
    answer = run(
        tmp_path / "run", "cat", "/etc/passwd", options=["--no-preload"]
    ).report()
    assert answer["io"]["files"] == [] and answer["io"]["coverage"] is None
    methods = {p["metric"]: p["status"] for p in answer["provenance"]}
    assert methods["io"] == "unavailable"


# ---- Nothing breaks ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "what",
    "daemon cancel handler vfork errno reuse raw storm stack".split(),
)
def test_programs_do_what_they_like_with_descriptors(tmp_path, what):
    file = tmp_path / "file"
    file.write_bytes(content()[: 20000 if what == "storm" else SIZE])
    done = run(tmp_path / "run", program("io_safety"), what, file, check=False)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
    answer = done.report()
    if what == "daemon":
        assert file_named(answer, "file")["read_bytes"] == 102 * SIZE
    if what == "vfork":
        found = file_named(answer, "file")
        assert found["read_bytes"] == 10000 and found["open_at_end"] == 0
    if what == "storm":
        found = file_named(answer, "file")
        assert found["read_bytes"] % 20000 == 0 and found["read_bytes"] > 40 * 20000
        assert found["processes"] == 41 and found["open_at_end"] == 0
    if what == "raw":
        found = file_named(answer, "file")
        assert found["opens"] == 400 and found["open_at_end"] == 0
    if what == "reuse":
        assert file_named(answer, "file")["read_bytes"] == 8 * 251 * SIZE


COMMANDS = {
    "tar": "tar cf - -C {dir} a b | tar tvf - | wc -l; tar czf {out} -C {dir} a; tar tzf {out}",
    "cp": "cp {dir}/a {out} && cmp {dir}/a {out} && cp -r {dir} {out}.d && ls {out}.d",
    "cat": "cat {dir}/a {dir}/b - < {dir}/a | md5sum",
    "dd": "dd if={dir}/a of={out} bs=777 status=none; md5sum < {out}",
    "grep": "grep -c abc {dir}/a; grep -rn zab {dir} | sort | head -50",
    "sort": "sort {dir}/a | uniq -c | sort -rn | head -5",
    "sed": "sed -i.bak s/abc/XYZ/ {dir}/b; head -c 1000 {dir}/b; cmp {dir}/a {dir}/b.bak",
    "sqlite3": "sqlite3 {out} 'create table t(x); insert into t values(1),(2); "
    "select sum(x) from t; pragma integrity_check'",
    "python": "/usr/bin/python3 -c \"import subprocess, tempfile; "
    "f = tempfile.TemporaryFile(); f.write(open('{dir}/a','rb').read()); f.seek(0); "
    "print(len(f.read()), subprocess.check_output(['wc', '-c', '{dir}/a']))\"",
    "perl": "perl -ne 'print if /xyz/; END {{ print STDERR $. }}' {dir}/a",
    "awk": "awk '{{ n += length($0) }} END {{ print n, NR }}' {dir}/a",
    "find": "find {dir} -name a -exec wc -c {{}} + | awk '{{print $1}}'",
    "gzip": "gzip -c {dir}/a | gunzip | md5sum",
    "bash": "while read -r line; do echo ${{#line}}; done < {dir}/a | head -200 | md5sum",
    "read-eof": "printf 'no newline' | (read x; echo \"[$x] $?\")",
    "closed": "cat {dir}/a >&-; echo $?; echo hi <&- | cat",
    "full": "echo x > /dev/full; echo $?",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_output_and_status_are_the_same(tmp_path, name):
    first = "bash" if name in ("bash", "read-eof", "closed", "full") else COMMANDS[name].split()[0]
    if not shutil.which(first):
        pytest.skip(f"no {first} here")

    def outcome(prefix, where):
        where.mkdir()
        (where / "a").write_bytes(content()[:200000])
        (where / "b").write_bytes(content()[:200000])
        line = COMMANDS[name].format(dir=where, out=str(where) + ".out")
        os.utime(where / "a", (1e9, 1e9))
        os.utime(where / "b", (1e9, 1e9))
        done = subprocess.run(
            [*prefix, "bash", "-c", line],
            capture_output=True,
            timeout=100,
            env=environment(LC_ALL="C"),
        )
        clean = [s.replace(str(where).encode(), b"DIR") for s in (done.stdout, done.stderr)]
        return done.returncode, clean

    bare = outcome([], tmp_path / "bare")
    seen = outcome(
        [SONDE, "run", "--quiet", "-o", tmp_path / "run", "--"], tmp_path / "seen"
    )
    assert seen == bare


def test_a_growing_number_of_descriptors_is_told(tmp_path):
    code = """
import os, time
for _ in range(60):
    os.open('/etc/passwd', os.O_RDONLY)
    time.sleep(0.05)
"""
    start = time.monotonic()
    answer = run(tmp_path / "run", "/usr/bin/python3", "-c", code).report()
    descriptors = answer["io"]["descriptors"]
    assert time.monotonic() > start
    assert descriptors["open_at_end"] >= 60 and descriptors["growing"] is True
    steady = run(tmp_path / "b", "cat", "/etc/passwd").report()["io"]["descriptors"]
    assert steady["growing"] is False


def test_installed_modules_take_one_row_so_that_data_have_theirs(tmp_path):
    """`import torch` reads some two thousand files: they must not fill the list."""
    (tmp_path / "mine.py").write_text("x = 1\n")
    code = f"import sys, json, email, http.client, unittest, xml.dom, asyncio; sys.path.insert(0, {str(tmp_path)!r}); import mine"
    files = run(tmp_path / "run", "/usr/bin/python3", "-c", code).report()["io"]["files"]
    paths = {f["path"]: f for f in files}
    assert paths["(installed modules)"]["opens"] > 20
    assert not [p for p in paths if "/lib/python3" in p and p.endswith((".py", ".pyc"))]
    assert any("mine" in p for p in paths)  # the program's own are told one by one
