"""threads=N: each process computes with N threads, whatever it asks for.

The launcher has put OMP_NUM_THREADS and its kin into the environment; here the program's
own settings are overruled.
"""

from __future__ import annotations

import os
import sys
from typing import Any

NAMES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def install(course: Any) -> None:
    threads = course.spec.get("threads")
    if not threads:
        return
    wanted = str(int(threads))
    kind = type(os.environ)
    real = kind.__setitem__

    def __setitem__(self: Any, key: Any, value: Any) -> None:
        real(self, key, wanted if key in NAMES else value)

    kind.__setitem__ = __setitem__  # type: ignore[method-assign]
    for name in NAMES:
        os.environ[name] = wanted
    part = course.part("threads")
    part.settled = True


def torch_came(course: Any, torch: Any) -> None:
    threads = course.spec.get("threads")
    if not threads:
        return
    count, real = int(threads), torch.set_num_threads
    real(count)

    def set_num_threads(_: int) -> None:
        real(count)

    torch.set_num_threads = set_num_threads
    course.looks.append(lambda: _libraries(course, count))


def _libraries(course: Any, count: int) -> None:
    """BLAS libraries that were told otherwise by another way (threadpoolctl)."""
    if course.step != 2:
        return
    import ctypes

    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        paths = {line.split()[-1] for line in maps if ".so" in line}
    for path in paths:
        name = os.path.basename(path)
        if "openblas" not in name and "libblas" not in name:
            continue
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        for function in (
            "openblas_set_num_threads",
            "openblas_set_num_threads64_",
            "scipy_openblas_set_num_threads64_",
        ):
            if hasattr(library, function):
                getattr(library, function)(count)
    numba = sys.modules.get("numba")
    if numba is not None and hasattr(numba, "set_num_threads"):
        numba.set_num_threads(count)
