"""The DataLoader's iterators: the main process waits for a batch.

(A first, plain form: one zone per fetch.)
"""

from __future__ import annotations

from typing import Any

from .. import _sonde
from . import steps
from .phases import zone


def install(torch: Any) -> None:
    from torch.utils.data import dataloader

    base = dataloader._BaseDataLoaderIter
    fetch = _sonde.Watched(base.__next__, zone("DataLoader", "data_loading"))

    def __next__(self: Any) -> Any:
        steps.fetch_begins(self)
        try:
            batch = fetch(self)
        except StopIteration:
            steps.exhausted(self)
            raise
        steps.fetch_ends(self, batch)
        return batch

    base.__next__ = __next__
