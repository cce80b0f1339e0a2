# timeout: 1800
"""A thousand million zones in one run: counts exact, memory and disk bounded."""

import sys
import threading
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "system"))
from sonde_test import (  # noqa: E402
    assert_consistent,
    counts_by_path,
    disk_bytes,
    program,
    report,
    run,
)

MIB = 1 << 20
ZONES = 1_000_000_000


class DiskWatch(threading.Thread):
    """The most a directory held at any moment."""

    def __init__(self, directory):
        super().__init__(daemon=True)
        self.directory, self.peak, self.done = directory, 0, False

    def run(self):
        while not self.done:
            try:
                self.peak = max(self.peak, disk_bytes(self.directory))
            except FileNotFoundError:
                pass  # a file went while we counted
            time.sleep(0.1)


@pytest.mark.parametrize(("threads", "limit_mib"), [(2, 256), (8, 64)])
def test_a_billion_zones(tmp_path, threads, limit_mib):
    directory = tmp_path / "run"
    watch = DiskWatch(directory)
    watch.start()
    done = run(
        directory,
        program("billion"),
        ZONES,
        threads,
        options=["--max-trace", f"{limit_mib}MiB"],
        timeout=900,
    )
    watch.done = True
    watch.join()
    answer = report(directory)
    pairs = ZONES // 2 // threads * threads
    assert counts_by_path(answer) == {("outer",): pairs, ("outer", "inner"): pairs}
    assert answer["summary"]["lost"] == 0
    assert answer["summary"]["events"] >= 4 * pairs
    assert_consistent(answer)
    assert watch.peak <= (limit_mib + 2) * MIB
    # The mapping of the trace counts as resident; nothing else may grow.
    assert float(done.stdout) <= limit_mib + 32
