"""sonde.optimize.loader: better settings for a DataLoader, proven on the data themselves."""

from __future__ import annotations

import math
import time
from typing import Any, Callable, NamedTuple, Optional, Union

from . import _limits, _torchloader as _loaders
from ._analyse import Analysis, analyse, is_map_style, length_of
from ._cache import CachedDataset, DiskStore, MemoryStore
from ._dataset import cache_share, memory_cap, not_cached
from ._measure import Candidate, decide
from ._receipt import Receipt, Trial
from ._values import same

LEAST_BATCHES, MOST_BATCHES = 8, 256
PASSES = 40  # that a budget should pay for
PASS_S = 0.5  # is long enough for one
ALLOWED = ("random", "iterable", "order", "batch_size")


class Loaded(NamedTuple):
    """A loader and why it is as it is: `loader, receipt = sonde.optimize.loader(…)`."""

    loader: Any
    receipt: Receipt


def loader(
    source: Any,
    config: Optional[Any] = None,
    *,
    batch_size: Optional[int] = None,
    shuffle: bool = False,
    step: Union[Callable[[Any], Any], float, None] = None,
    budget_s: float = 30.0,
    allow: tuple[str, ...] = (),
) -> Loaded:
    """Find settings with which a DataLoader is faster, and prove it.

        loader, receipt = sonde.optimize.loader(
            DataLoader(dataset, batch_size=32, shuffle=True), sonde.Config(num_workers=8),
            step=train_step)
        print(receipt)

    `source` is a DataLoader, or a data set with `batch_size` (and `shuffle`). Workers up to
    `num_workers` and the cores (more than cores only for samples that wait), prefetching,
    kept workers, pinned memory (with CUDA) and a cache are tried on the first batches of an
    epoch, in turns with the loader as it is, within `budget_s` seconds. A new loader is
    returned when the lower bound of the time saved clears `optimization_threshold` and
    `auto_optimize` is on; otherwise the given one, unchanged. It has the same sampler and
    generator: the same samples in the same order, checked to the bit unless they are random.

    `step` is what training does with a batch, called with those of the trials (so give one
    that may be called more often), or the seconds it takes; without it, loading alone counts
    and an epoch bound by training may gain less. `allow` names what may change training:
    "random" (caching random samples), "iterable" (iterable data sets, which are iterated
    for it), "order" (giving up kept workers, after which torch shuffles later epochs
    otherwise), "batch_size" (larger batches). Random generators are put back afterwards.
    """
    from .._config import Config

    config = config or Config()
    for name in allow:
        if name not in ALLOWED:
            raise ValueError(f"loader(allow=) knows {', '.join(ALLOWED)}, not {name!r}")
    own = _as_loader(source, batch_size, shuffle)
    receipt = Receipt("loader", settings=_loaders.settings_of(own))
    if not config.optimize_loading:
        receipt.keep("as it is", "optimize_loading is off")
        return Loaded(own, receipt)
    if not is_map_style(own.dataset) and "iterable" not in allow:
        receipt.keep("as it is", "an iterable data set needs allow=('iterable',)")
        return Loaded(own, receipt)
    began, state = time.monotonic(), _loaders.random_state(own)
    try:
        search = _Search(own, config, _step(step), allow, receipt, began + budget_s)
        found = search.run()
    finally:
        state.restore()
    receipt.seconds = time.monotonic() - began
    return Loaded(own if found is None else found, receipt)


def _as_loader(source: Any, batch_size: Optional[int], shuffle: bool) -> Any:
    data = _loaders.torch_data()
    if not isinstance(source, data.DataLoader):
        return data.DataLoader(source, batch_size=batch_size or 1, shuffle=shuffle)
    if batch_size is not None or shuffle:
        raise ValueError(
            "loader(batch_size=, shuffle=) belong to a data set: a DataLoader has its own "
            "(allow=('batch_size',) tries larger batches)"
        )
    return source


def _step(step: Any) -> Optional[Callable[[Any], Any]]:
    if step is None or callable(step):
        return step  # type: ignore[no-any-return]
    seconds = float(step)
    return lambda batch: time.sleep(seconds)


# ---- proposing -------------------------------------------------------------------------


def worker_counts(found: Analysis, config: Any) -> list[int]:
    """Counts worth a trial: the most there may be, and half of it."""
    most = config.num_workers
    if found.kind == "iterable":  # more than one would each give all samples
        return [1] if most else []
    if found.complexity != "waits":
        most = min(most, _limits.cores())
    return [n for n in dict.fromkeys((most, most // 2)) if n > 0]


def proposals(
    found: Analysis,
    config: Any,
    own: dict[str, Any],
    cuda: bool,
    allow: tuple[str, ...] = (),
) -> list[dict[str, Any]]:
    """Settings worth a trial, without those the loader has. Workers that it keeps stay
    kept: torch draws another random number each epoch for those it starts anew."""
    kept = bool(own["num_workers"] and own["persistent_workers"])
    keeps = kept and "order" not in allow
    pin = config.pin_memory and cuda
    counts = worker_counts(found, config)
    if found.kind == "iterable" and own["num_workers"]:
        counts = [own["num_workers"]] if config.num_workers else []
    tried = [
        {
            "num_workers": n,
            "prefetch_factor": config.prefetch_factor,
            "pin_memory": pin,
            "persistent_workers": config.persistent_workers or keeps,
        }
        for n in counts
    ]
    # Samples may be too cheap for workers.
    if own["num_workers"] and found.kind == "map" and not keeps:
        tried.append({**own, "num_workers": 0, "persistent_workers": False})
    if pin and not own["pin_memory"]:
        tried.append({**own, "pin_memory": True})
    return [t for t in tried if t != own]


def _name(settings: dict[str, Any], cache: str = "") -> str:
    workers = settings["num_workers"]
    words = [f"{workers} workers" if workers != 1 else "1 worker"]
    if workers:
        words.append(f"prefetch {settings['prefetch_factor']}")
    if settings["persistent_workers"] and workers:
        words.append("kept")
    if settings["pin_memory"]:
        words.append("pinned")
    if settings.get("batch_size"):
        words.append(f"batches of {settings['batch_size']}")
    return ", ".join(words) + (f", cached in {cache}" if cache else "")


# ---- searching -------------------------------------------------------------------------


class _Search:
    """One call of loader(): its trials, and the loaders they run on."""

    def __init__(
        self,
        own: Any,
        config: Any,
        step: Optional[Callable[[Any], Any]],
        allow: tuple[str, ...],
        receipt: Receipt,
        deadline: float,
    ) -> None:
        self.own, self.config, self.step, self.allow = own, config, step, allow
        self.receipt, self.deadline = receipt, deadline
        self.map_style = is_map_style(own.dataset)
        self.settings = _loaders.settings_of(own)
        self.open: list[Any] = []  # trial loaders, to be closed
        self.batches: list[Any] = []
        self.most = LEAST_BATCHES
        self.makers: dict[str, tuple[dict[str, Any], str]] = {}

    def run(self) -> Optional[Any]:
        try:
            return self._run()
        finally:  # an interrupt, too, leaves no worker behind
            for loader in self.open:
                _loaders.close(loader)
                if isinstance(loader.dataset, CachedDataset):
                    loader.dataset.close()

    def _run(self) -> Optional[Any]:
        if self.map_style:
            self.batches = _loaders.first_batches(self.own, MOST_BATCHES)
            if len(self.batches) < 2:
                self.receipt.keep("as it is", "fewer than two batches: nothing to gain")
                return None
        found = self.found = analyse(self.own.dataset, self._flat()[:64:8] or None)
        self.receipt.analysis = found.to_dict()
        own = self._candidate(self.settings, "as it is")
        own.trial.name = "as it is"
        probe = self._probe()
        self._bottlenecks(found, probe)
        if self._no_headroom(probe):
            return None
        tried = self._candidates(found)
        if not tried:
            self.receipt.keep("as it is", "the configuration has no other settings")
            return None
        best = decide(
            self.receipt, own, tried, self.config.optimization_threshold, self.deadline
        )
        return None if best is None else self._accept(best, found)

    # ---- trials ----

    def _flat(self) -> list[Any]:
        if self.own.batch_sampler is None:
            return list(self.batches)
        return [index for batch in self.batches for index in batch]

    def _fixed(self, settings: dict[str, Any]) -> dict[str, Any]:
        """The batches of a trial, cut anew for another batch size."""
        if not self.map_style:
            return {}
        size = settings.get("batch_size")
        batches = self.batches[: self.most]
        if size is not None:
            flat = [index for batch in batches for index in batch]
            batches = [flat[i : i + size] for i in range(0, len(flat), size)]
        return _loaders.fixed(self.own, batches)

    def _epoch_batches(self, settings: dict[str, Any]) -> Optional[int]:
        count = length_of(self.own)
        if count is None or "batch_size" not in settings:
            return count
        return math.ceil(count * self.own.batch_size / settings["batch_size"])

    def _loader(self, settings: dict[str, Any], cache: str = "") -> Any:
        data = self.own.dataset
        if cache:
            data = CachedDataset(data, self._trial_store(cache))
        made = _loaders.with_settings(
            self.own, settings, dataset=data, **self._fixed(settings)
        )
        self.open.append(made)
        return made

    def _trial_store(self, cache: str) -> Any:
        """As full, in the trial's samples, as the real one will be in the epoch's."""
        share = cache_share(self.found, self.config, in_memory=cache == "memory")
        return self._store(cache, math.ceil(share * len(self._fixed_samples())))

    def _fixed_samples(self) -> list[Any]:
        return self._flat()[: self.most * max(1, self.own.batch_size or 1)]

    def _store(self, cache: str, most: int) -> Any:
        if cache == "memory":
            return MemoryStore(most, memory_cap(self.config))
        compression = self.config.compression if self.config.optimize_io else "none"
        return DiskStore(self.config.cache_dir, most, compression)

    def _candidate(
        self, settings: dict[str, Any], name: str, cache: str = ""
    ) -> Candidate:
        trial = Trial(name, {**settings, "cache": cache or None})
        self.receipt.trials.append(trial)
        self.makers[name] = (settings, cache)
        loaders: list[Any] = []

        def run() -> float:
            if not loaders:
                loaders.append(self._loader(settings, cache))
            done = _loaders.Pass(self.step).run(loaders[0], self.most)
            return done.epoch_s(self._epoch_batches(settings))

        return Candidate(trial, run)

    def _probe(self) -> _loaders.Pass:
        """One pass of the user's own loader: how long a batch takes, so how many fit."""
        loader = self._loader(self.settings)
        first = _loaders.Pass(self.step).run(loader, self.most)
        each = first.total_s / max(1, first.count)
        room = (self.deadline - time.monotonic()) / PASSES
        wanted = int(min(room, PASS_S) / max(each, 1e-6))
        self.most = max(LEAST_BATCHES, min(MOST_BATCHES, wanted))
        if self.map_style:
            self.most = min(self.most, len(self.batches))
        return first

    def _candidates(self, found: Analysis) -> list[Candidate]:
        config, cuda = self.config, _loaders.cuda_available()
        made = []
        for settings in proposals(found, config, self.settings, cuda, self.allow):
            if self._fits(settings, found):
                made.append(self._candidate(settings, _name(settings)))
        if not not_cached(found, config, self.allow) and not config.streaming:
            if "order" in self.allow or not self.settings["persistent_workers"]:
                alone = {**self.settings, "num_workers": 0, "persistent_workers": False}
                made.append(self._candidate(alone, _name(alone, "memory"), "memory"))
            if self.settings["num_workers"]:
                name = _name(self.settings, "disk")
                made.append(self._candidate(self.settings, name, "disk"))
        return made + self._larger_batches()

    def _larger_batches(self) -> list[Candidate]:
        size, plain = self.own.batch_size, _loaders.torch_data().BatchSampler
        if "batch_size" not in self.allow or not self.map_style or not size:
            return []
        if type(self.own.batch_sampler) is not plain:
            self.receipt.note("batches have a sampler of their own: size not tried")
            return []
        tried = [{**self.settings, "batch_size": size * k} for k in (2, 4)]
        fits = [t for t in tried if t["batch_size"] <= len(self._fixed_samples())]
        return [self._candidate(t, _name(t)) for t in fits]

    def _fits(self, settings: dict[str, Any], found: Analysis) -> bool:
        """Whether the batches that workers prepare ahead have room."""
        room = _limits.room_bytes(self.config.max_memory_usage)
        if room is None or not found.sample_bytes or not self.config.memory_efficient:
            return True
        batch = found.sample_bytes * max(1, self.own.batch_size or 1)
        ahead = settings["num_workers"] * (settings["prefetch_factor"] or 2) * batch
        if ahead <= room:
            return True
        self.receipt.note(
            f"{_name(settings)}: {ahead / 2**20:.0f} MiB ahead pass max_memory_usage"
        )
        return False

    # ---- judging ----

    def _no_headroom(self, probe: _loaders.Pass) -> bool:
        """Loading that takes less than the threshold cannot gain it."""
        if self.step is None or probe.total_s <= 0:
            return False
        waiting = probe.wait_s / probe.total_s
        if waiting >= self.config.optimization_threshold:
            return False
        self.receipt.threshold = self.config.optimization_threshold
        self.receipt.keep(
            "as it is", f"loading takes {waiting:.0%} of a step: too little to gain"
        )
        return True

    def _accept(self, best: Candidate, found: Analysis) -> Optional[Any]:
        receipt, name = self.receipt, best.trial.name
        settings, cache = self.makers[name]
        if not self._same_batches(settings, cache, found):
            best.trial.note = "its batches differ"
            receipt.keep("as it is", f"{name} is faster, but its batches differ")
            return None
        if not self.config.auto_optimize:
            receipt.keep("as it is", f"{name} is faster, but auto_optimize is off")
            return None
        receipt.accepted, receipt.chosen = True, name
        gain = receipt.gain
        receipt.reason = f"saves at least {gain.low:.0%}" if gain else ""
        receipt.settings = {**settings, "cache": cache or None}
        if settings["num_workers"] != self.settings["num_workers"]:
            receipt.note(
                "another number of workers: random numbers drawn in the data set come "
                "from other streams"
            )
        if "batch_size" in settings:
            receipt.note("another batch size changes training (allowed)")
        data = self.own.dataset
        if cache:
            data = CachedDataset(data, self._store(cache, self.config.cache_size))
            receipt.note("the first epoch fills the cache: the gain comes with the next")
        return _loaders.with_settings(self.own, settings, dataset=data)

    def _same_batches(
        self, settings: dict[str, Any], cache: str, found: Analysis
    ) -> bool:
        if found.random:
            self.receipt.note("samples are random: batches could not be compared")
            return True
        if "batch_size" in settings:
            return True
        loaders = [self._loader(self.settings), self._loader(settings, cache)]
        for _ in range(2 if cache else 1):  # the second time from the cache
            pairs = [_loaders.batches_of(loader, self.most) for loader in loaders]
            if not all(same(a, b) for a, b in zip(*pairs)):
                return False
        return True

    def _bottlenecks(self, found: Analysis, probe: _loaders.Pass) -> None:
        receipt, each = self.receipt, probe.wait_s / max(1, probe.count)
        receipt.analysis["batch_s"] = each
        if self.step is not None and probe.total_s > 0:
            receipt.analysis["wait_share"] = probe.wait_s / probe.total_s
        if each > 0.1 and found.complexity != "waits":  # the reference's threshold
            receipt.bottleneck(
                "data_loading_bound",
                f"a batch takes {each * 1e3:.0f} ms",
                "use workers",
            )
        if found.complexity == "waits":
            receipt.bottleneck(
                "data_loading_bound",
                f"a sample waits most of its {(found.sample_s or 0) * 1e3:.1f} ms",
                "workers beyond the cores, or a cache",
            )
        if found.complexity == "computes":
            receipt.bottleneck(
                "preprocessing_bound",
                f"a sample computes for {(found.sample_s or 0) * 1e3:.1f} ms",
                "workers up to the cores, a cache, or a faster transform",
            )
        cores = _limits.cores()
        if self.settings["num_workers"] > cores and found.complexity != "waits":
            receipt.bottleneck(
                "too_many_workers",
                f"{self.settings['num_workers']} workers on {cores} cores",
                "at most one a core",
            )

