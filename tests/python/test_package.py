"""The package as people meet it."""

import ast
import inspect
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from conftest import BUILD, PACKAGE, SONDE, SOURCE, environment, python

import sonde
from sonde import _sonde


def test_importing_it_imports_neither_torch_nor_numpy_nor_asyncio():
    heavy = "{'torch', 'numpy', 'asyncio', 'pandas', 'IPython', 'cProfile'}"
    python("-c", f"import sonde, sys; assert not {heavy} & set(sys.modules)")


def test_python_m_sonde_is_the_command():
    assert python("-m", "sonde", "--version").stdout == f"sonde {sonde.__version__}\n"
    done = python("-m", "sonde", "nonsense", check=False)
    assert done.returncode == 2 and "nonsense" in done.stderr


def test_python_m_sonde_run_runs_programs(tmp_path):
    words = (
        "-m",
        "sonde",
        "run",
        "-q",
        "-o",
        tmp_path / "r",
        "--",
        sys.executable,
        "-c",
    )
    done = python(
        *words, "import sonde, sys; sys.exit(7 * sonde.recording())", check=False
    )
    assert done.returncode == 7


def test_a_missing_command_is_explained(tmp_path):
    env = environment(SONDE_COMMAND=tmp_path / "none")
    done = python("-m", "sonde", "report", check=False, env=env)
    assert done.returncode == 2 and "none" in done.stderr


def test_every_public_name_exists_and_has_a_docstring():
    for name in sonde.__all__:
        thing = getattr(sonde, name)
        if callable(thing) and name not in ("PHASES", "__version__"):
            assert inspect.getdoc(thing), name
    assert set(sonde.__all__) <= set(dir(sonde))
    with pytest.raises(AttributeError, match="nonsense"):
        sonde.nonsense


def test_the_stubs_name_what_the_extension_has():
    stub = Path(sonde.__file__).parent / "_sonde.pyi"
    tree = ast.parse(stub.read_text())
    stubbed = {
        n.name for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))
    }
    stubbed |= {n.target.id for n in tree.body if isinstance(n, ast.AnnAssign)}
    real = {n for n in dir(_sonde) if not n.startswith("__")} | {"__version__"}
    assert stubbed == real
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            methods = {n.name for n in node.body if isinstance(n, ast.FunctionDef)}
            for method in methods - {"__init__", "__enter__", "__exit__"}:
                assert hasattr(getattr(_sonde, node.name), method), (node.name, method)
    assert (Path(sonde.__file__).parent / "py.typed").exists()


def test_the_extension_exports_one_symbol():
    if not os.path.exists("/usr/bin/nm"):
        pytest.skip("no nm")
    out = subprocess.run(
        ["nm", "-D", "--defined-only", _sonde.__file__], capture_output=True, text=True
    ).stdout
    assert [line.split()[-1] for line in out.splitlines()] == ["PyInit__sonde"]


def test_examples_in_docstrings_are_valid_python():
    for name in sonde.__all__:
        doc = inspect.getdoc(getattr(sonde, name)) or ""
        block = [line[4:] for line in doc.splitlines() if line.startswith("    ")]
        if block:
            ast.parse("\n".join(block))


def test_a_wheel_brings_everything(tmp_path):
    """Installed without network into an empty folder, with its own command."""
    words = ["/usr/bin/python3", SOURCE / "tools" / "wheel", tmp_path / "wheels"]
    env = environment(SONDE_BUILD=SONDE.parent)
    subprocess.run([*map(str, words)], check=True, env=env, capture_output=True)
    number = "%d%d" % sys.version_info[:2]
    (wheel,) = (tmp_path / "wheels").glob(f"*-cp{number}-cp{number}-*.whl")
    site = tmp_path / "site"
    pip = ["-m", "pip", "install", "--no-index", "--no-deps", "--target", site, wheel]
    if python("-m", "pip", "--version", check=False).returncode == 0:
        python(*pip)
    else:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(site)
        os.chmod(site / "sonde" / "bin" / "sonde", 0o755)
    script = (
        "import sonde, sys, pathlib; assert str(pathlib.Path(sonde.__file__)).startswith("
        "sys.argv[1]); from sonde._command import find; assert find().startswith(sys.argv[1])\n"
        "with sonde.session(output='run') as s:\n with sonde.zone('z'): pass\n"
        "assert s.report().operation('z')['count'] == 1"
    )
    env = environment(PYTHONPATH=site, PATH="/usr/bin:/bin")
    python("-c", script, site, cwd=tmp_path, env=env)
    done = python("-m", "sonde", "--version", env=env)
    assert done.stdout == f"sonde {sonde.__version__}\n"
    out = subprocess.run(
        ["ldd", site / "sonde" / "bin" / "sonde"], capture_output=True, text=True
    )
    own = [line for line in out.stdout.splitlines() if str(site) in line]
    assert any("jansson" in line for line in own)


def test_the_package_under_test_is_ours():
    assert Path(sonde.__file__).parent.parent == PACKAGE and SONDE.exists()


def test_libraries_need_little_thread_local_storage():
    """Libraries loaded late share a block of some hundred bytes: more, and they are not
    loaded at all."""
    readelf = shutil.which("readelf")
    if readelf is None:
        pytest.skip("no readelf")
    files = [*(PACKAGE / "sonde").glob("_sonde*.so"), BUILD / "libsonde-preload.so"]
    for file in filter(Path.exists, files):
        out = subprocess.run(
            [readelf, "-lW", str(file)], capture_output=True, text=True, check=True
        ).stdout
        for line in out.splitlines():
            if line.split()[:1] == ["TLS"]:
                assert int(line.split()[5], 16) <= 1024, file
