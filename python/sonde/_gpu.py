"""GPU memory by torch, when the program uses torch with CUDA already.

Never imports torch, never creates a CUDA context, never synchronises.
"""

from __future__ import annotations

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
    return 1 - free / total


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
