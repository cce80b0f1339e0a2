"""What ranks say to each other, and which rank this is.

Collectives called by the program are zones of the phase communication: a call that blocks
is all of it, one with async_op=True is asked for now and waited for in Work.wait.

What DistributedDataParallel exchanges it does inside the backward pass, without a call of
Python's: that time stays in backward. But it has timers of its own, which go in its first
ten passes and in every hundredth after; what they say is read a little later and told.

Ranks that torchrun starts are told by the environment (_layer.py). Those that a program
spawns itself are known when they join their group.
"""

from __future__ import annotations

from typing import Any

from .. import _layer
from .phases import told_of, watch_function, zone

_COLLECTIVES = (
    "all_reduce", "all_reduce_coalesced", "reduce", "broadcast", "broadcast_object_list",
    "all_gather", "all_gather_coalesced", "all_gather_into_tensor", "_all_gather_base",
    "all_gather_object", "gather", "gather_object", "scatter", "scatter_object_list",
    "reduce_scatter", "reduce_scatter_tensor", "_reduce_scatter_base",
    "all_to_all", "all_to_all_single", "barrier", "monitored_barrier",
    "send", "recv", "send_object_list", "recv_object_list",
)  # fmt: skip


def _collectives(torch: Any) -> None:
    package = torch.distributed
    owners = [package.distributed_c10d, package]
    for name in _COLLECTIVES:
        watch_function(owners, name, zone(name, "communication"))


def _waits(torch: Any) -> None:
    """Of what was asked for before: Work is a class of C++, its methods can be replaced."""
    work = torch._C._distributed_c10d.Work
    watch_function([work], "wait", zone("Work.wait", "communication"))


def _groups(torch: Any) -> None:
    package = torch.distributed

    def joined(_: tuple[Any, ...]) -> None:
        rank, size = package.get_rank(), package.get_world_size()
        _layer.note("rank", rank=rank, world_size=size)

    told_of(package.distributed_c10d, "init_process_group", joined)
    package.init_process_group = package.distributed_c10d.init_process_group


_TIMED_FIRST, _TIMED_EVERY, _LATER = 10, 100, 2
_NUMBERS = {
    "comm_ns": "avg_backward_comm_time",
    "overlap_ns": "avg_backward_compute_comm_overlap_time",
    "bytes": "total_parameter_size_bytes",
    "cap_bytes": "bucket_cap_bytes",
    "unused": "find_unused_parameters",
}


def _tell_exchange(model: Any) -> None:
    said = model._get_ddp_logging_data()
    numbers = {ours: int(said.get(theirs, 0)) for ours, theirs in _NUMBERS.items()}
    buckets = said.get("rebuilt_bucket_sizes") or said.get("bucket_sizes") or ""
    if numbers["comm_ns"] > 0:
        _layer.note("exchange", buckets=len(buckets.split(",")), **numbers)


def _replicas(torch: Any) -> None:
    replica = torch.nn.parallel.DistributedDataParallel
    if not hasattr(replica, "_get_ddp_logging_data"):
        return
    passes = 0  # of all replicas: a program has one, or a few that take turns

    def passed(args: tuple[Any, ...]) -> None:
        nonlocal passes
        passes += 1
        if passes == _TIMED_FIRST + _LATER or (
            passes > _TIMED_FIRST and passes % _TIMED_EVERY == _LATER
        ):
            _layer.guarded("torch: exchange", _tell_exchange, args[0])

    told_of(replica, "forward", passed)


def install(torch: Any) -> None:
    distributed = getattr(torch, "distributed", None)
    if distributed is None or not distributed.is_available():
        return
    for part in (_collectives, _waits, _groups, _replicas):
        _layer.guarded(f"torch: {part.__name__}", part, torch)
