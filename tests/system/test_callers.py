# labels: no_asan
"""The public header in other people's programs: C11, C17, C++, strict warnings."""

import itertools
import shutil
import subprocess

import pytest
from sonde_test import BUILD, SOURCE, assert_consistent, counts_by_path, operation, program, run

STANDARDS = {
    "c": ["c11", "gnu11", "c17", "gnu17"],
    "c++": ["c++11", "c++14", "c++17", "c++20"],
}
COMPILERS = {"c": ["gcc", "clang"], "c++": ["g++", "clang++"]}

CALLER = """
#include <sonde/sonde.h>
int main(void)
{
    struct sonde_options options;
    struct sonde_operation op;
    sonde_options_standard(&options);
    SONDE_ZONE("outer", SONDE_FORWARD)
    {
        SONDE_ZONE_EX("inner", SONDE_BACKWARD, "component", "category", "a=b")
        {
            sonde_value("batch", 32.0);
        }
        SONDE_ZONE("one line", SONDE_OTHER) { SONDE_ZONE("within", SONDE_OTHER) { sonde_step(); } }
    }
    sonde_operation_begin(&op, "operation", SONDE_NO_PHASE, NULL, NULL);
    sonde_operation_end(&op);
    SONDE_ZONE_OF(sonde_site_named("named", SONDE_SYNC, NULL, NULL, NULL)) { sonde_mark("m"); }
    return op.duration_s < 0.0 ? 1 : 0;
}
"""

WARNINGS = ["-Wall", "-Wextra", "-Werror", "-Wshadow", "-Wpedantic", "-Wconversion"]


def compile_caller(tmp_path, language, compiler, standard, *flags):
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler} here")
    source = tmp_path / ("caller.c" if language == "c" else "caller.cpp")
    source.write_text(CALLER)
    command = [compiler, f"-std={standard}", "-O2", *flags, "-I", SOURCE / "include"]
    command += [source, "-o", tmp_path / "caller", BUILD / "libsonde.a", "-pthread", "-lm"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


CASES = [
    (language, compiler, standard)
    for language in STANDARDS
    for compiler, standard in itertools.product(COMPILERS[language], STANDARDS[language])
]


@pytest.mark.parametrize(("language", "compiler", "standard"), CASES)
def test_the_header_compiles_without_a_warning_and_works(tmp_path, language, compiler, standard):
    compile_caller(tmp_path, language, compiler, standard, "-pedantic-errors", *WARNINGS)
    counts = counts_by_path(run(tmp_path / "run", tmp_path / "caller").report())
    assert counts == {
        ("outer",): 1,
        ("outer", "inner"): 1,
        ("outer", "one line"): 1,
        ("outer", "one line", "within"): 1,
        ("operation",): 1,
        ("named",): 1,
    }


def test_exceptions_end_the_zones_they_leave(tmp_path):
    done = run(tmp_path / "run", program("exceptions"), 1000)
    assert int(done.stdout) == 1000
    answer = done.report()
    path, expected = ("outer",), {("outer",): 1000, ("returns",): 1000, ("after",): 1000}
    for _ in range(4):
        path += ("deeper",)
        expected[path] = 1000
    assert counts_by_path(answer) == expected
    assert operation(answer, "returns")["component"] == "cpp"
    assert operation(answer, "returns")["category"] == "category"
    assert_consistent(answer)
