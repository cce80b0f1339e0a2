"""GPU memory by torch, and use by NVML, when the program uses torch with CUDA already.

Never imports torch, never creates a CUDA context, never synchronises.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any, NamedTuple, Optional

MIB = 2.0**20


class GpuMemory(NamedTuple):
    allocated_mb: float
    reserved_mb: float
    peak_mb: float


def cuda() -> Optional[Any]:
    """torch.cuda when it is in use, else None."""
    torch = sys.modules.get("torch")
    module = getattr(torch, "cuda", None)
    try:
        if module is not None and module.is_available() and module.is_initialized():
            return module
    except Exception:  # a broken driver is no business of the profiled program
        pass
    return None


def memory_share() -> Optional[float]:
    """What is in use of the current device's memory, by anybody, 0 to 1."""
    module = cuda()
    if module is None:
        return None
    free, total = module.mem_get_info()
    return 1 - float(free) / float(total)


def memory() -> Optional[GpuMemory]:
    """Memory of torch's allocator on the current device, None without."""
    module = cuda()
    if module is None:
        return None
    return GpuMemory(
        module.memory_allocated() / MIB,
        module.memory_reserved() / MIB,
        module.max_memory_allocated() / MIB,
    )


# ---- How busy it is, by NVML -----------------------------------------------------------

PERIOD_S = 1 / 6  # what NVML looks back over, at least
_nvml: list[Any] = []  # the library once asked for; [None]: there is none


def _library() -> Optional[Any]:
    if not _nvml:
        found = None
        with contextlib.suppress(Exception):
            import ctypes

            name = os.environ.get("SONDE_NVML") or "libnvidia-ml.so.1"
            library = ctypes.CDLL(name)
            found = library if library.nvmlInit_v2() == 0 else None
        _nvml.append(found)
    return _nvml[0]


def _index(current: int) -> Optional[int]:
    """NVML's number of torch's device; None where it cannot be known."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return current
    numbers = [word.strip() for word in visible.split(",")]
    if current < len(numbers) and numbers[current].isdigit():
        return int(numbers[current])
    return None


def utilization() -> Optional[float]:
    """How busy the current device was in the last fraction of a second, in percent."""
    module = cuda()
    library = _library() if module is not None else None
    if module is None or library is None:
        return None
    try:
        import ctypes

        index = _index(module.current_device())
        device, rates = ctypes.c_void_p(), (ctypes.c_uint * 2)()
        if index is None or library.nvmlDeviceGetHandleByIndex_v2(
            ctypes.c_uint(index), ctypes.byref(device)
        ):
            return None
        if library.nvmlDeviceGetUtilizationRates(device, ctypes.byref(rates)):
            return None
        return float(rates[0])
    except Exception:  # as above
        return None
