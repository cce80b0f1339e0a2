"""sonde.optimize.dataset: samples kept where they fit, streamed where they do not."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional

from . import _limits
from ._analyse import Analysis, analyse
from ._cache import CachedDataset, DiskStore, MemoryStore
from ._receipt import Receipt
from ._stream import StreamedDataset


class Prepared(NamedTuple):
    """A data set and why it is as it is: `data, receipt = sonde.optimize.dataset(…)`."""

    dataset: Any
    receipt: Receipt


def memory_cap(config: Any) -> Optional[int]:
    """Bytes that samples in memory may take; None: only their number counts."""
    if not config.memory_efficient:
        return None
    return _limits.room_bytes(config.max_memory_usage)


def cache_share(found: Analysis, config: Any, in_memory: bool) -> float:
    """The part of the data set that a cache may keep, so also its hit rate later on."""
    if not found.length:
        return 0.0
    share = config.cache_size / found.length
    cap = memory_cap(config) if in_memory else None
    if cap is not None and found.total_bytes:
        share = min(share, cap / found.total_bytes)
    return float(min(1.0, share))


def dataset(
    dataset: Any,
    config: Optional[Any] = None,
    *,
    where: Optional[str] = None,
    key: Optional[str] = None,
    least_hit_rate: float = 0.0,
    allow: tuple[str, ...] = (),
) -> Prepared:
    """A data set that keeps its samples, or streams them when it is larger than memory.

        data, receipt = sonde.optimize.dataset(images, sonde.Config(cache_size=5000))
        data[0]; data[0]
        data.hit_rate                           # 0.5

    `enable_caching` keeps up to `cache_size` samples: in memory up to `max_memory_usage`
    (`where="memory"`), or in files of `cache_dir`, compressed (`where="disk"`, the choice
    when memory holds fewer of them). `key` names the data: the files then stay and are used
    by later runs. With `least_hit_rate` a cache that answers less often is given up after
    the second epoch.

    A data set that gives another sample for the same index (a random transform) is not
    cached: training would see the same one every epoch. `allow=("random",)` does it all
    the same. With `streaming` nothing is kept: iterate over the result, which reads a chunk
    ahead. Otherwise, and when nothing can be kept, the data set is returned as it is.
    """
    from .._config import Config

    config = config or Config()
    if where not in (None, "memory", "disk"):
        raise ValueError("dataset(where=) must be 'memory' or 'disk'")
    receipt = Receipt("data set")
    if config.streaming:
        receipt.accepted, receipt.chosen = True, "streamed"
        receipt.reason = "config.streaming"
        receipt.settings = {"chunk_size": config.chunk_size, "ahead": config.async_io}
        return Prepared(StreamedDataset(dataset, config), receipt)
    found = analyse(dataset)
    receipt.analysis = found.to_dict()
    why = not_cached(found, config, allow)
    if why:
        receipt.keep("as it is", why)
        return Prepared(dataset, receipt)
    store = _make_store(found, config, where, key)
    receipt.accepted, receipt.chosen = True, f"cached in {store.kind}"
    kept = min(1.0, store.most_samples / found.length) if found.length else 0.0
    receipt.reason = f"room for {kept:.0%} of {found.length} samples"
    receipt.settings = {"where": store.kind, "samples": store.most_samples}
    if found.random:
        receipt.note("samples are random: every epoch now sees the same ones (allowed)")
    return Prepared(CachedDataset(dataset, store, least_hit_rate), receipt)


def not_cached(found: Analysis, config: Any, allow: tuple[str, ...]) -> str:
    """Why samples of this data set are not kept; "" when they may be."""
    if not config.enable_caching or config.cache_size == 0:
        return "caching is off (enable_caching, cache_size)"
    if found.kind != "map" or not found.length:
        return "only data sets with a length and an index can be cached"
    if found.random and "random" not in allow:
        return "the same index gives different samples (allow=('random',) caches them)"
    return ""


def _make_store(
    found: Analysis, config: Any, where: Optional[str], key: Optional[str]
) -> Any:
    memory = cache_share(found, config, in_memory=True)
    if where is None:
        fits = memory >= cache_share(found, config, in_memory=False)
        where = "memory" if fits and key is None else "disk"
    if where == "memory":
        return MemoryStore(config.cache_size, memory_cap(config))
    compression = config.compression if config.optimize_io else "none"
    return DiskStore(config.cache_dir, config.cache_size, compression, key)
