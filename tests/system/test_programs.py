# labels: no_asan
# waits: yes
"""Programs of every kind run under `sonde run` as they run without: same output, same
messages, same end."""

import os
import pty
import shutil
import signal
import stat
import subprocess
import sys

import pytest
from sonde_test import BUILD, SONDE, environment, program

PATIENCE = 60


def kind(name, *words):
    return [program("kinds"), name, *words]


def script(text):
    return ["sh", "-c", text]


JAVA = """public class Hello { public static void main(String[] a) throws Exception {
Thread t = new Thread(() -> System.out.println("thread")); t.start(); t.join();
byte[][] b = new byte[64][]; for (int i = 0; i < 64; i++) b[i] = new byte[1 << 16];
System.out.println("java " + b.length); System.exit(17); } }"""

PYTHON = {
    "python_prints": "import sys; print('out'); print('err', file=sys.stderr); sys.exit(4)",
    "python_raises": "raise RuntimeError('no')",
    "python_threads": "import threading as t\nl=[]\nx=[t.Thread(target=l.append,args=(i,))"
                      " for i in range(20)]\n[i.start() for i in x]; [i.join() for i in x]\n"
                      "print(sum(l))",
    "python_subprocess": "import subprocess as s; print(s.run(['sh','-c','echo x; exit 3'],"
                         "capture_output=True))",
    "python_multiprocessing": "import multiprocessing as m\n"
                              "with m.get_context('fork').Pool(3) as p:"
                              " print(p.map(abs, range(-9, 0)))",
    "python_faulthandler": "import faulthandler, signal, os, resource\n"
                           "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
                           "faulthandler.enable(); print('on', flush=True)\n"
                           "signal.signal(signal.SIGSEGV, signal.SIG_DFL)\n"
                           "os.kill(os.getpid(), signal.SIGSEGV)",
    "python_asyncio": "import asyncio\nasync def f(): await asyncio.sleep(0.01); return 3\n"
                      "print(asyncio.run(f()))",
    "python_ctypes": "import ctypes; libc = ctypes.CDLL(None); print(libc.abs(-3), "
                     "libc.strlen(b'four'))",
    "python_signals": "import signal, os\n"
                      "signal.signal(signal.SIGPROF, lambda *a: print('prof'))\n"
                      "os.kill(os.getpid(), signal.SIGPROF)",
    "python_tempfiles": "import tempfile, os\nwith tempfile.TemporaryDirectory() as d:\n"
                        " open(d+'/x','w').write('y'*100000); print(os.listdir(d))",
    "python_mmap": "import mmap\nm = mmap.mmap(-1, 1<<20); m[5:8] = b'abc'; print(m[5:8])",
}

COMMANDS = {
    # shells and their children
    "sh": script("echo out; echo err >&2; exit 7"),
    "sh_pipeline": script("seq 1 1000 | sort -rn | head -3; exit 2"),
    "sh_pipefail": ["bash", "-c", "set -o pipefail; yes | head -1; echo $?"],
    "sh_background": script("sleep 0.05 & wait; echo done"),
    "sh_subshells": script("x=$( (echo a; (echo b)) ); echo $x; (exit 5)"),
    "sh_traps": script("trap 'echo bye; exit 6' EXIT; echo hi"),
    "sh_signal": script("kill -USR1 $$"),
    "sh_exec": script("exec sh -c 'exec sh -c \"echo end; exit 3\"'"),
    "sh_ulimits": script("ulimit -n 32; ulimit -f 100; echo ok; exit 1"),
    "bash_substitution": ["bash", "-c", "diff <(echo a) <(echo b); echo $?"],
    "bash_jobs": ["bash", "-c", "set -m; sleep 0.05 & jobs %1 | grep -c Running; fg >/dev/null"],
    "env_cleared": ["env", "-i", "/bin/sh", "-c", "echo $PATH; exit 4"],
    "nohup": ["nohup", "sh", "-c", "echo x"],
    "timeout_kills": ["timeout", "0.1", "sleep", "5"],
    "xargs": script("seq 1 20 | xargs -n1 -P4 echo | sort -n | tail -1"),
    "find": ["find", "/etc/passwd", "-name", "passwd"],
    "tar": script("tar cf - /etc/passwd 2>/dev/null | tar tf -"),
    "setsid": ["setsid", "-w", "sh", "-c", "echo leader; exit 5"],
    "nice": ["nice", "-n", "5", "sh", "-c", "nice"],
    # interpreters
    "perl": ["perl", "-e", 'print "perl\\n"; my $p = fork; if (!$p) { exit 3 } '
             'waitpid $p, 0; exit $? >> 8'],
    "perl_dies": ["perl", "-e", "die 'bad'"],
    "awk": ["awk", "BEGIN { for (i = 0; i < 9; i++) s += i; print s; exit 3 }"],
    "awk_command": ["awk", 'BEGIN { "echo sub" | getline x; print x; system("exit 3") }'],
    "sed": script("echo abc | sed s/b/x/"),
    "node": ["node", "-e", "console.log('node', [...Array(9).keys()].length); "
             "setTimeout(() => process.exit(18), 5)"],
    "java": None,  # made below
    "gawk": ["gawk", "BEGIN { print strftime(\"%Y\", 0); exit 2 }"],
    "busybox": ["busybox", "sh", "-c", "echo box; exit 3"],
    "git": ["git", "--version"],
    "strace": ["strace", "-f", "-o", "/dev/null", "sh", "-c", "echo traced; exit 3"],
    "gdb": ["gdb", "-q", "-batch", "-nx", "-ex", "print 6*7"],
    "gcc": script("echo 'int main(void){return 0;}' | gcc -x c -fsyntax-only -; echo $?"),
    "openssl": script("echo x | sha256sum"),
    # kinds of programs
    "static": [program("kinds_static"), "word"],
    "cpp_threads": [program("kinds_cpp")],
    **{name: [sys.executable, "-c", text] for name, text in PYTHON.items()},
    **{name: kind(name) for name in (
        "own_sigprof fork_exec vfork_exec spawned exec_chain small_files small_files_fatal "
        "few_files few_addresses small_stack closed_stdio close_all daemonise traced "
        "ignored_children threads own_segv segfault overflow aborts fpe masks descriptors "
        "drops_user raw_clone sockets at_exit_hooks dies_with_parent").split()},
    "huge_arguments": kind("sums", *["x" * 1000] * 900),
    "odd_arguments": kind("sums", b"\xff\xfe not utf-8", b"", b"a\nb", "ä".encode(), b"--"),
    "jail": kind("jailed"),
}


def run_both(command, tmp_path, env=None, **options):
    """(stdout, stderr, status) without Sonde and with it."""
    env = dict(environment() if env is None else env, LC_ALL="C.UTF-8")
    ends = []
    for prefix in ([], [SONDE, "run", "-q", "-o", tmp_path / "run", "--"]):
        place = tmp_path / f"in{len(ends)}"
        place.mkdir(exist_ok=True)
        done = subprocess.run([*prefix, *command], cwd=place, env=env, timeout=PATIENCE,
                              capture_output=True, **{"stdin": subprocess.DEVNULL, **options})
        ends.append((done.stdout, done.stderr, done.returncode))
    return ends


def assert_same(ends):
    (out, err, status), (out2, err2, status2) = ends
    assert status2 == status, err2.decode(errors="replace")
    assert out2 == out
    assert err2 == err


def make_java(tmp_path):
    (tmp_path / "Hello.java").write_text(JAVA)
    return ["java", "-Xshare:auto", str(tmp_path / "Hello.java")]


def skip_without(name):
    if not name.startswith(str(BUILD)) and shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")


@pytest.mark.parametrize("name", COMMANDS)
def test_it_runs_as_without(tmp_path, name):
    command = COMMANDS[name] or make_java(tmp_path)
    skip_without(os.fsdecode(command[0]))
    if name == "jail" and os.getuid() != 0:
        pytest.skip("only root can chroot")
    ends = run_both(command, tmp_path)
    assert_same(ends)


def test_there_are_enough_kinds():
    assert len(COMMANDS) >= 50


# ---- Special surroundings -----------------------------------------------------------------


def test_a_set_user_id_program(tmp_path):
    if os.getuid() != 0:
        pytest.skip("only root can make one")
    copy = tmp_path / "kinds"
    shutil.copy(program("kinds"), copy)
    os.chown(copy, 65534, 65534)
    copy.chmod(0o4755 | stat.S_ISUID)
    for parent in [tmp_path, *tmp_path.parents[:2]]:
        parent.chmod(0o755)
    ends = run_both([copy, "set_user"], tmp_path)
    assert ends[0][0].startswith(b"1 ")
    # LD_PRELOAD is in the environment but the loader leaves it alone.
    assert ends[0][2] == ends[1][2] == 2
    assert ends[0][0].split()[0] == ends[1][0].split()[0]
    assert ends[0][1] == ends[1][1]


def test_input_is_passed_on(tmp_path):
    ends = run_both(["sh", "-c", "cat; exit 3"], tmp_path, stdin=None, input=b"x" * 300000)
    assert ends[0][0] == b"x" * 300000
    assert_same(ends)


@pytest.mark.parametrize("limit", ["-v 400000", "-n 24", "-f 200", "-s 512", "-u 4000", "-c 0",
                                   "-t 20"])
def test_limits_that_were_set_before(tmp_path, limit):
    ends = []
    for wrap in ("", f"{SONDE} run -q -o {tmp_path}/run -- "):
        text = f"ulimit {limit}; exec {wrap}{program('kinds')} threads"
        done = subprocess.run(["bash", "-c", text], capture_output=True, env=environment(),
                              timeout=PATIENCE)
        ends.append((done.stdout, done.stderr, done.returncode))
    if limit == "-v 400000" and ends[1][0] == ends[0][0]:
        assert ends[1][2] == ends[0][2]
        return
    assert_same(ends)


def read_terminal(command, env, keys=b""):
    """Runs on a terminal of its own; what was shown there and the status. Keys are typed
    when it has said that it is ready."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(command[0], command, env)
    shown = b""
    while keys and b"ready" not in shown:
        shown += os.read(fd, 65536)
    if keys:
        os.write(fd, keys)
    while True:
        try:
            part = os.read(fd, 65536)
        except OSError:
            break
        if not part:
            break
        shown += part
    return shown, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize("text, keys", [
    ("stty size; test -t 0 && test -t 1 && test -t 2 && echo tty; exit 4", b""),
    ("echo ready; read x; echo got $x; exit 5", b"hello\n"),
    # noflsh: at an interrupt a terminal throws away what nobody has read yet
    ("stty noflsh; trap 'echo int; exit 6' INT; echo ready; read x", b"\x03"),
    ("stty -echo; echo ready; read x; stty echo; echo secret $x", b"pass\n"),
])
def test_on_a_terminal(tmp_path, text, keys):
    env = environment(LC_ALL="C.UTF-8", TERM="dumb")
    plain = read_terminal(["/bin/sh", "-c", text], env, keys)
    watched = read_terminal([str(SONDE), "run", "-q", "-o", str(tmp_path / "run"), "--",
                             "/bin/sh", "-c", text], env, keys)
    assert watched == plain


def test_without_proc(tmp_path):
    """A mount name space in which /proc is empty, as in some jails."""
    hide = ["unshare", "-m", "sh", "-c",
            'mount -t tmpfs none /proc && exec "$@"', "sh"]
    if subprocess.run([*hide, "true"], capture_output=True).returncode != 0:
        pytest.skip("/proc cannot be hidden here")
    ends = []
    for prefix in ([], [str(SONDE), "run", "-q", "-o", str(tmp_path / "run"), "--"]):
        done = subprocess.run([*hide, *prefix, "sh", "-c", "echo hi; exit 3"],
                              capture_output=True, env=environment(), timeout=PATIENCE)
        ends.append((done.stdout, done.stderr, done.returncode))
    assert_same(ends)


def test_signals_that_were_ignored_stay_ignored(tmp_path):
    def ignoring():
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)

    ends = run_both(kind("masks"), tmp_path, preexec_fn=ignoring)
    assert_same(ends)


def test_a_closed_output_is_a_broken_pipe_for_the_program(tmp_path):
    ends = []
    for prefix in ([], [SONDE, "run", "-q", "-o", tmp_path / "run", "--"]):
        read, write = os.pipe()
        done = subprocess.Popen([*prefix, "sh", "-c", "sleep 0.2; yes; echo $? >&2"], stdout=write,
                                stderr=subprocess.PIPE, env=environment())
        os.close(write)
        os.close(read)
        ends.append((done.communicate(timeout=120)[1], done.returncode))
    assert ends[0] == ends[1]


# ---- Trees ------------------------------------------------------------------------------------


TREE = """
import os, subprocess, sys, time
def leaf(name, seconds):
    return subprocess.Popen([sys.executable, '-c', f'import time; time.sleep({seconds})'])
if os.fork() == 0:                       # a daemon: two forks and a session of its own
    os.setsid()
    if os.fork() == 0:
        open(sys.argv[1] + '/daemon', 'w').write(str(os.getpid()))
        time.sleep(2.5)
        os._exit(0)
    os._exit(0)
os.wait()
ranks = [leaf('rank', 2.2) for _ in range(3)]             # as torchrun
shell = subprocess.Popen(['sh', '-c', 'sleep 2.2 & echo $! > "$0"/job; wait', sys.argv[1]])
chain = subprocess.Popen(['sh', '-c', 'exec sh -c "exec sleep 2.2"'])
time.sleep(2.3)
print(os.getpid(), shell.pid, chain.pid, *[r.pid for r in ranks])
for p in (*ranks, shell, chain):
    p.wait()
"""


def test_every_process_of_a_tree_is_in_the_report(tmp_path):
    from sonde_test import report, run
    (tmp_path / "tree.py").write_text(TREE)
    done = run(tmp_path / "run", sys.executable, tmp_path / "tree.py", tmp_path)
    pids = {int(p) for p in done.stdout.split()}
    pids |= {int((tmp_path / name).read_text()) for name in ("daemon", "job")}
    found = {p["pid"] for p in report(tmp_path / "run")["processes"]}
    assert pids <= found, f"missing {pids - found} of {pids}"
