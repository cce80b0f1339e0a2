"""On GPUs: the device's time at each phase, waits for the device, transfers.

Nothing of this is there unless torch was built for CUDA and the machine has a card; CUDA is
never initialised by us.
"""

from __future__ import annotations

import atexit
import os
from typing import Any

from .. import _layer, _sonde
from .phases import COMPONENT, zone


def has_cards(torch: Any) -> bool:
    """Whether CUDA may come into use; without a call of it, which would initialise it."""
    return bool(getattr(torch.version, "cuda", None)) and os.path.exists(
        "/dev/nvidiactl"
    )


def _make_zone(name: str, phase: int, file: str, line: int) -> Any:
    return _sonde.zone(name, phase, COMPONENT, _file=file, _line=line)


def _tensors(torch: Any) -> None:
    base = getattr(torch._C, "TensorBase", None) or torch._C._TensorBase
    folder = os.path.dirname(torch.__file__) + os.sep
    _sonde.watch_tensors(
        base, torch.Tensor, torch.nn.Parameter, torch.device, folder, _make_zone
    )


def _waits(torch: Any) -> None:
    """Functions in Python that wait for the device."""
    for owner, name in (
        (torch.cuda, "synchronize"),
        (torch.cuda.Stream, "synchronize"),
        (torch.cuda.Event, "synchronize"),
    ):
        function = owner.__dict__.get(name)
        if function is not None:
            _sonde.watch_function(function, zone("synchronize", "sync"), False, True)


_stream: Any = None  # torch's function for the current stream, once CUDA is in use


def switch_events() -> None:
    """Device time from now on, or none: as _layer.cuda_events says."""
    if _stream is None:
        return
    if _layer.cuda_events:
        _sonde.device_start(_stream)
    else:
        _sonde.device_flush()
        _sonde.device_stop()


def _card_stats(torch: Any) -> Any:
    """A function: bytes at the peak of torch's allocator, and of what it reserved. It takes a
    lock of the allocator and calls nothing of CUDA."""
    device, stats = torch._C._cuda_getDevice, torch._C._cuda_memoryStats

    def look() -> tuple[int, int]:
        now = stats(device())
        return now["allocated_bytes"]["all"]["peak"], now["reserved_bytes"]["all"]["peak"]

    return look


def cuda_came(stream: Any) -> None:
    """torch has initialised CUDA."""
    global _stream
    _stream = stream
    _layer.guarded("torch: device time", switch_events)


def _events(torch: Any) -> None:
    """torch calls back when it initialises CUDA."""
    torch.cuda._lazy_call(lambda: cuda_came(torch._C._cuda_getCurrentRawStream))
    atexit.register(_sonde.device_flush)
    os.register_at_fork(after_in_child=_sonde.device_stop)


def _memory(torch: Any) -> None:
    """Peaks of batches (highs.c), from when CUDA is in use."""
    torch.cuda._lazy_call(lambda: _sonde.watch_card(_card_stats(torch)))
    os.register_at_fork(after_in_child=lambda: _sonde.watch_card(None))


def install(torch: Any) -> None:
    if has_cards(torch):
        for part in (_tensors, _waits, _events, _memory):
            _layer.guarded(f"torch: cuda {part.__name__}", part, torch)
