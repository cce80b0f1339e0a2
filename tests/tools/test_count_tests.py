"""tools/count_tests: single cases out of ctest's JUnit files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(os.environ.get("SONDE_SOURCE", Path(__file__).parents[2]))

CMOCKA_GOOD = "[==========] Running 6 test(s).\n[==========] 6 test(s) run.\n[  PASSED  ] 6 test(s).\n"
CMOCKA_BAD = (
    "[  FAILED  ] wrong\n[==========] 3 test(s) run.\n[  PASSED  ] 2 test(s).\n"
    "[  FAILED  ] 1 test(s), listed below:\n[  FAILED  ] wrong\n\n 1 FAILED TEST(S)\n"
)
PYTEST_BAD = "F.\nE  assert 1 == 2\n1 failed, 4 passed, 1 skipped, 2 errors in 0.01s\n"


def count(tmp_path: Path, *cases: tuple[str, str], more: int = 0) -> tuple[str, int]:
    body = "".join(
        f'<testcase name="t" status="{status}"><system-out>{escape(out)}</system-out></testcase>'
        for status, out in cases
    )
    junit = tmp_path / "junit.xml"
    junit.write_text(f"<testsuite>{body}</testsuite>")
    result = subprocess.run(
        [sys.executable, str(ROOT / "tools/count_tests"), "--more-failures", str(more), str(junit)],
        capture_output=True,
        text=True,
        check=False,
    )
    return result.stdout.splitlines()[-1], result.returncode


def test_cases_are_summed(tmp_path: Path) -> None:
    cases = [("run", CMOCKA_GOOD), ("run", "28 passed in 0.85s\n"), ("run", "12 inputs tried\n")]
    assert count(tmp_path, *cases) == ("35 passed, 0 failed", 0)


def test_failed_cases_are_told_from_passed_ones(tmp_path: Path) -> None:
    cases = [("fail", CMOCKA_BAD), ("fail", PYTEST_BAD)]
    assert count(tmp_path, *cases) == ("6 passed, 4 failed", 1)


def test_a_program_that_fails_after_its_cases_passed_is_a_failure(tmp_path: Path) -> None:
    leak = CMOCKA_GOOD + "ERROR: LeakSanitizer: detected memory leaks\n"
    assert count(tmp_path, ("fail", leak)) == ("6 passed, 1 failed", 1)


def test_a_program_that_says_nothing_counts_as_one(tmp_path: Path) -> None:
    assert count(tmp_path, ("run", ""), ("fail", "")) == ("1 passed, 1 failed", 1)


def test_builds_that_failed_count(tmp_path: Path) -> None:
    assert count(tmp_path, ("run", ""), more=2) == ("1 passed, 2 failed", 1)


def test_nothing_at_all_is_no_success(tmp_path: Path) -> None:
    assert count(tmp_path) == ("0 passed, 0 failed", 1)
