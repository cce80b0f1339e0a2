# timeout: 300
"""The Python layer that `sonde run` brings: it is there wherever an interpreter starts,
and nobody notices."""

import json
import subprocess
import sys
import textwrap
import venv

import pytest
from pythons import interpreters
from sonde_test import BUILD, environment, run

PYTHON = "/usr/bin/python3"
LAYER = BUILD / "python" / "sonde" / "_layer.py"
pytestmark = pytest.mark.skipif(
    not LAYER.exists() or not list(LAYER.parent.glob("_sonde.*.so")),
    reason="built without the Python package",
)

SEEN = """
import os, sys
state = sys.modules.get("_sonde_layer") is not None
"""


def notes(done, kind):
    file = done.directory / "python.jsonl"
    lines = file.read_text().splitlines() if file.exists() else []
    return [n for n in map(json.loads, lines) if n["kind"] == kind]


def row(answer, metric):
    found = [p for p in answer["provenance"] if p["metric"] == metric]
    return found[0] if found else None


def has_torch(python=PYTHON):
    done = subprocess.run([python, "-c", "import torch"], capture_output=True)
    return done.returncode == 0


torch = pytest.mark.skipif(not has_torch(), reason="no torch for /usr/bin/python3")

# ---- everywhere ----


@pytest.mark.parametrize("minor", interpreters())
def test_every_interpreter_gets_the_layer_and_an_unchanged_path(tmp_path, minor):
    look = "import sys; print(sys.path, sorted(m for m in sys.modules if 'sitec' in m))"
    python = interpreters()[minor]
    bare = subprocess.run(
        [python, "-c", look], capture_output=True, text=True, env=environment()
    )
    done = run(tmp_path / "r", python, "-c", look)
    assert done.stdout == bare.stdout
    assert done.stderr == ""
    assert notes(done, "interpreter")[0]["version"].startswith(f"3.{minor}.")
    assert notes(done, "problem") == []


def test_modules_and_scripts_get_it_like_commands(tmp_path):
    (tmp_path / "prog.py").write_text(SEEN + "print(state, __name__, sys.argv[1:])")
    env = environment(PYTHONPATH=tmp_path)
    for i, words in enumerate((["prog.py", "a"], ["-m", "prog", "a"])):
        done = run(tmp_path / f"r{i}", PYTHON, *words, env=env, cwd=tmp_path)
        assert done.stdout == "True __main__ ['a']\n"


def test_the_users_own_sitecustomize_runs_as_ever(tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import sys\nsys.flag_of_mine = __file__\n")
    look = "import sys, sitecustomize as s; print(sys.flag_of_mine, s.__file__, s.__spec__.origin)"
    env = environment(PYTHONPATH=own)
    bare = subprocess.run([PYTHON, "-c", look], capture_output=True, text=True, env=env)
    done = run(tmp_path / "r", PYTHON, "-c", look, env=env)
    assert done.stdout == bare.stdout and str(own) in done.stdout
    assert len(notes(done, "interpreter")) == 1


def test_a_sitecustomize_that_fails_fails_in_its_own_words(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("raise RuntimeError('mine')\n")
    env = environment(PYTHONPATH=tmp_path)
    words = [PYTHON, "-c", "print(1)"]
    bare = subprocess.run(words, capture_output=True, text=True, env=env)
    done = run(tmp_path / "r", *words, env=env)
    assert (done.stdout, done.stderr) == (bare.stdout, bare.stderr)
    assert "mine" in done.stderr


def test_children_find_it_through_the_environment(tmp_path):
    script = """
    import os, subprocess, sys
    look = "import sys; print('_sonde_layer' in sys.modules)"
    print(subprocess.check_output([sys.executable, "-c", look], text=True), end="")
    print(os.environ["PYTHONPATH"].split(":", 1)[1])
    """
    env = environment(PYTHONPATH="/somewhere:/else")
    done = run(tmp_path / "r", PYTHON, "-c", textwrap.dedent(script), env=env)
    assert done.stdout == "True\n/somewhere:/else\n"
    assert len({n["pid"] for n in notes(done, "interpreter")}) == 2


def test_virtual_environments_need_nothing_installed(tmp_path):
    venv.EnvBuilder(symlinks=True, with_pip=False).create(tmp_path / "env")
    python = tmp_path / "env" / "bin" / "python"
    look = SEEN + "print(state, sys.prefix != sys.base_prefix, 'sonde' in sys.modules)"
    done = run(tmp_path / "r", python, "-c", look)
    assert done.stdout == "True True False\n"


def test_versions_may_differ_within_one_run(tmp_path):
    pythons = list(interpreters().values())
    calls = "; ".join(f"'{p}' -c 'import sys; print(sys.version_info[1])'" for p in pythons)
    done = run(tmp_path / "r", "sh", "-c", calls)
    assert [int(x) for x in done.stdout.split()] == list(interpreters())
    assert len(notes(done, "interpreter")) == len(pythons)


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_workers_of_multiprocessing_record_too(tmp_path, method):
    script = tmp_path / "prog.py"
    script.write_text(
        textwrap.dedent(
            """
            import multiprocessing, sys
            import sonde
            def work(i):
                with sonde.zone("in a worker"):
                    return i * i
            if __name__ == "__main__":
                with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
                    print(pool.map(work, range(8)))
            """
        )
    )
    done = run(tmp_path / "r", PYTHON, script, method)
    assert done.stdout == "[0, 1, 4, 9, 16, 25, 36, 49]\n"
    answer = done.report()
    assert sum(o["count"] for o in answer["operations"] if o["name"] == "in a worker") == 8


# ---- nowhere ----


@pytest.mark.parametrize("flag", ["-I", "-E", "-S"])
def test_interpreters_told_to_be_left_alone_are_and_the_report_says_so(tmp_path, flag):
    look = "import sys, time; time.sleep(0.6); print('_sonde_layer' in sys.modules)"
    done = run(tmp_path / "r", PYTHON, flag, "-c", look)
    # Without site nothing takes our folder off the path, but nothing runs from it either.
    assert done.stdout == "False\n"
    found = row(done.report(), "python.layer")
    assert found["status"] == "unavailable" and flag in found["method"]


def test_it_can_be_left_out(tmp_path):
    look = "import os, sys; print('_sonde_layer' in sys.modules, 'PYTHONPATH' in os.environ)"
    env = environment()
    env.pop("PYTHONPATH", None)
    done = run(tmp_path / "r", PYTHON, "-c", look, options=["--no-python"], env=env)
    assert done.stdout == "False False\n"
    env["SONDE_NO_PYTHON"] = "1"
    done = run(tmp_path / "r2", PYTHON, "-c", look, env=env)
    assert done.stdout == "False False\n"


def test_a_broken_layer_is_not_the_programs_problem(tmp_path):
    broken = tmp_path / "sonde" / "_site"
    broken.mkdir(parents=True)
    text = (BUILD / "python/sonde/_site/sitecustomize.py").read_text()
    (broken / "sitecustomize.py").write_text(text)
    (tmp_path / "sonde" / "_layer.py").write_text("raise RuntimeError('ours')\n")
    env = environment(SONDE_PYTHON_LAYER=broken)
    done = run(tmp_path / "r", PYTHON, "-c", "print('fine')", env=env)
    assert (done.stdout, done.stderr) == ("fine\n", "")


def test_a_missing_package_is_told_in_a_note(tmp_path):
    env = environment(SONDE_PYTHON_LAYER=tmp_path / "nothing")
    done = run(tmp_path / "r", PYTHON, "-c", "print('fine')", env=env)
    assert done.stdout == "fine\n"
    assert any("Python phases" in n for n in done.report()["notes"])


def test_a_module_of_the_programs_own_called_sonde_is_the_programs(tmp_path):
    (tmp_path / "sonde.py").write_text("mine = True\n")
    (tmp_path / "prog.py").write_text("import sonde; print(sonde.mine)\n")
    done = run(tmp_path / "r", PYTHON, tmp_path / "prog.py")
    assert done.stdout == "True\n"


# ---- torch ----

DDP = """
import os, torch, torch.distributed as dist, torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
dist.init_process_group("gloo")
torch.manual_seed(0)
net = DistributedDataParallel(nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in DataLoader(TensorDataset(torch.randn(40, 8), torch.randn(40, 1)), 8):
    opt.zero_grad()
    nn.functional.mse_loss(net(x), y).backward()
    opt.step()
dist.destroy_process_group()
"""


@torch
def test_ranks_of_torchrun_are_one_run(tmp_path):
    script = tmp_path / "ddp.py"
    script.write_text(DDP)
    # Debian's torch 1.13 cannot take the defaults of -r and -t with Python 3.11.
    words = [PYTHON, "-m", "torch.distributed.run", "--standalone", "-r", 1, "-t", 1]
    words += ["--log_dir", tmp_path / "logs"]
    done = run(
        tmp_path / "r", *words, "--nproc_per_node", 2, script, timeout=200,
        env=environment(OMP_NUM_THREADS=1),
    )
    answer = done.report()
    ranks = [p for p in answer["processes"] if p["rank"] in (0, 1)]
    assert sorted(p["rank"] for p in ranks) == [0, 1]
    for process in ranks:
        phases = {p["phase"]: p["count"] for p in process["phases"]}
        assert phases["forward"] == phases["backward"] == 5
        assert phases["optimizer"] == 10  # step and zero_grad
    main = next(p for p in answer["processes"] if p["main"])
    assert main["rank"] == 0
    assert answer["summary"]["step_ms"]["count"] == 5
    assert answer["summary"]["optimizer_steps"] == 5


@torch
def test_an_import_that_fails_fails_with_the_same_traceback(tmp_path):
    package = tmp_path / "torch"
    package.mkdir()
    (package / "__init__.py").write_text("import this_is_not_there\n")
    prog = tmp_path / "prog.py"
    prog.write_text("import torch\n")
    bare = subprocess.run([PYTHON, prog], capture_output=True, text=True, env=environment())
    done = run(tmp_path / "r", PYTHON, prog, check=False)
    assert (done.returncode, done.stderr) == (bare.returncode, bare.stderr)
    assert "this_is_not_there" in done.stderr


@torch
def test_torch_is_imported_as_ever(tmp_path):
    look = (
        "import sys; assert 'torch' not in sys.modules; import torch;"
        "print(torch.__spec__, torch.__loader__.__class__, vars(torch.__loader__),"
        " torch.__spec__.loader is torch.__loader__)"
    )
    bare = subprocess.run([PYTHON, "-c", look], capture_output=True, text=True, env=environment())
    done = run(tmp_path / "r", PYTHON, "-c", look)
    strip = lambda text: text.split(" at 0x")[0] + text.rsplit(">", 1)[1]  # noqa: E731
    assert strip(done.stdout) == strip(bare.stdout)


def test_the_installed_command_finds_its_package(tmp_path):
    done = subprocess.run(
        ["cmake", "--install", str(BUILD), "--prefix", str(tmp_path / "usr")],
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        pytest.skip("not everything is built: " + done.stderr[-200:])
    look = SEEN + "print(sys.modules['_sonde_layer'].__path__)"
    out = subprocess.run(
        [tmp_path / "usr/bin/sonde", "run", "-q", "-o", tmp_path / "r", "--", PYTHON, "-c", look],
        capture_output=True,
        text=True,
        env=environment(),
    )
    assert "usr/lib" in out.stdout and "inject/sonde" in out.stdout


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
